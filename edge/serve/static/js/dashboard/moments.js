// @ts-check
/** Moments as they are written, newest first, with filters. */

import { ApiError, get } from "./api.js";
import { byId, el, say, settled, thumbnail } from "./dom.js";
import { date, longDay, span } from "./time.js";
import { openMoment } from "./viewer.js";

/** @typedef {import("./api.js").Moment} Moment */
/** @typedef {import("./api.js").Found} Found */
/** @typedef {import("./api.js").Who} Who */

const PAGE = 30;
const LATEST = 4;

/**
 * @param {(day: string) => void} onDay called when a day is chosen; empty: none
 * @param {(id: string) => void} onPerson called when somebody is chosen
 */
export function moments(onDay, onPerson) {
  const form = byId("filters", HTMLFormElement);
  const list = byId("moment-list", HTMLOListElement);
  const more = byId("moments-more", HTMLButtonElement);
  const note = byId("moments-note", HTMLParagraphElement);
  /** @type {string | null} */
  let next = null;
  /** @type {Set<string> | null} */
  let known = null; // ids that were shown: what is not among them is new
  let pending = new AbortController();

  const value = (/** @type {string} */ name) => String(new FormData(form).get(name) ?? "").trim();

  /**
   * Ask for the first page.
   * @param {boolean} [fresh] the filters changed: nothing counts as new
   */
  async function load(fresh = false) {
    pending.abort();
    pending = new AbortController();
    if (fresh) known = null;
    const filters = { person: value("person"), camera: value("camera") };
    try {
      if (value("q")) {
        const [since, until] = value("day") ? [value("day"), value("day")] : ["", ""];
        const page = await get("/search", { q: value("q"), ...filters, since, until, limit: PAGE }, pending.signal);
        const found = /** @type {Found[]} */ (page.items);
        next = null;
        list.replaceChildren(...found.map((one) => card({ ...one, utterances: [], unusual: [], key_frames: one.key_frame ? [one.key_frame] : [] }, false)));
        note.textContent = found.length ? `${found.length} found, best first` : "Nothing was found.";
        known = null;
      } else {
        const page = await get("/moments", { ...filters, day: value("day"), label: value("label"), limit: PAGE }, pending.signal);
        next = page.next;
        put(page.items, true);
        void latest();
        const filtered = Object.values(filters).some(Boolean) || value("day") || value("label");
        note.textContent = page.items.length ? "" : filtered ? "Nothing fits these filters." : "Nothing is remembered yet.";
      }
    } catch (error) {
      if (error instanceof DOMException) return;
      if (error instanceof ApiError && (error.status === 404 || error.status === 422)) {
        list.replaceChildren();
        next = null;
        note.textContent = error.message;
      } else say(error);
    }
    more.hidden = !next;
  }

  /** What was remembered last, whatever the filters: phones show it under the live view. */
  async function latest() {
    const page = await get("/moments", { limit: LATEST }).catch(() => ({ items: [] }));
    byId("live-latest", HTMLOListElement).replaceChildren(.../** @type {Moment[]} */ (page.items).map((one) =>
      el("li", {}, el("button", { type: "button", onclick: () => void openMoment(one.id) },
        el("span", { class: "when" }, `${span(one.start, one.end)} · ${one.camera}`),
        el("span", {}, one.text || one.utterances.map((said) => `“${said.text}”`).join(" "))))));
  }

  /** @param {Moment[]} items @param {boolean} first whether they replace what is shown */
  function put(items, first) {
    const before = known;
    const position = list.scrollTop;
    if (first) list.replaceChildren();
    let day = list.lastElementChild instanceof HTMLElement ? list.lastElementChild.dataset.day ?? "" : "";
    for (const moment of items) {
      if (date(moment.start) !== day) {
        day = date(moment.start);
        list.append(el("li", { class: "daybreak", "data-day": day }, longDay(day)));
      }
      list.append(card(moment, first && before !== null && !before.has(moment.id)));
    }
    known = new Set([...(first ? [] : before ?? []), ...items.map((one) => one.id)]);
    if (first && before !== null) list.scrollTop = position;
  }

  /** @param {{ id: string, camera: string, start: string, end: string, text: string, entities: Who[], utterances: import("./api.js").Words[], key_frames: string[], unusual: string[] }} moment @param {boolean} fresh */
  function card(moment, fresh) {
    const words = moment.text || "Only speech";
    const open = () => void openMoment(moment.id);
    return el("li", { class: fresh ? "moment fresh" : "moment", "data-day": date(moment.start), "data-id": moment.id },
      el("button", { type: "button", class: "thumb", "aria-label": `Open ${moment.id}: ${words.slice(0, 120)}`, onclick: open },
        moment.key_frames.length ? thumbnail(moment.key_frames[0], "") : el("span", { class: "none" }, "no picture")),
      el("time", { datetime: moment.start }, `${span(moment.start, moment.end)} · ${moment.camera}`),
      ...moment.unusual.map((one) => el("p", { class: "odd" }, el("b", {}, "Unusual: "), one)),
      el("p", { class: "text" }, moment.text || ""),
      ...moment.utterances.slice(0, 3).map((said) =>
        el("p", { class: "quote" }, el("b", {}, `${said.speaker_name ?? "somebody"}: `), `“${said.text}”`)),
      moment.entities.length ? el("p", { class: "chips" }, ...moment.entities.map((one) =>
        el("button", { type: "button", class: "chip", onclick: () => onPerson(one.id) }, one.title))) : null,
    );
  }

  async function earlier() {
    if (!next) return;
    more.disabled = true;
    try {
      const page = await get("/moments", { person: value("person"), camera: value("camera"), day: value("day"), label: value("label"), limit: PAGE, before: next });
      next = page.next;
      put(page.items, false);
    } catch (error) {
      say(error);
    }
    more.disabled = false;
    more.hidden = !next;
  }

  const changed = settled(() => void load(true), 250);
  form.addEventListener("input", changed);
  form.addEventListener("submit", (event) => { event.preventDefault(); void load(true); });
  form.addEventListener("input", (event) => { if (event.target instanceof HTMLInputElement && event.target.name === "day") onDay(event.target.value); });
  more.addEventListener("click", () => void earlier());

  /** @param {string} name @param {{ value: string, words: string }[]} options @param {string} all */
  function choices(name, options, all) {
    const select = form.elements.namedItem(name);
    if (!(select instanceof HTMLSelectElement)) return;
    const before = select.value;
    select.replaceChildren(el("option", { value: "" }, all), ...options.map((one) => el("option", { value: one.value }, one.words)));
    select.value = options.some((one) => one.value === before) ? before : "";
  }

  return {
    load,
    /** @param {import("./api.js").Person[]} people */
    people: (people) => choices("person", people.map((one) => ({ value: one.id, words: one.title })), "everybody"),
    /** @param {string[]} names */
    cameras: (names) => choices("camera", names.map((one) => ({ value: one, words: one })), "all"),
    /** @param {string} name @param {string} text */
    filter(name, text) {
      const field = form.elements.namedItem(name);
      if (field instanceof HTMLInputElement || field instanceof HTMLSelectElement) field.value = text;
      void load(true);
    },
  };
}
