// @ts-check
/** People: best faces, facts, sightings, words, their names, and putting right who is who. */

import { get, send } from "./api.js";
import { byId, el, face, say } from "./dom.js";
import { forget } from "./keep.js";
import { ago, clock } from "./time.js";
import { openMoment } from "./viewer.js";
import { history, mergeForm, notThem } from "./corrections.js";

/** @typedef {import("./api.js").Person} Person */
/** @typedef {import("./api.js").WholePerson} WholePerson */

const SOURCES = { none: "no name yet", addressed: "called so by others", self: "said so themselves", user: "named by you" };

/** @param {(people: Person[]) => void} onPeople */
export function people(onPeople) {
  const list = byId("people-list", HTMLUListElement);
  const note = byId("people-note", HTMLParagraphElement);
  const detail = byId("person", HTMLElement);
  /** @type {string | null} */
  let shown = null;
  /** @type {Person[]} */
  let known = [];

  async function load() {
    let all = false; // are in the list
    try {
      const page = await get("/people", { limit: 500 });
      all = page.next === null;
      const everybody = /** @type {Person[]} */ (page.items);
      note.textContent = everybody.length ? String(everybody.length) : "";
      list.replaceChildren(...(everybody.length ? everybody.map(card) : [el("li", { class: "dim" }, "Nobody has been met yet.")]));
      known = everybody;
      onPeople(everybody);
    } catch (error) {
      say(error);
    }
    if (shown && all && !known.some((one) => one.id === shown)) close(); // forgotten, or taken for somebody else
    else if (shown && !editing()) await open(shown, false);
  }

  /** @param {Person} person */
  function card(person) {
    return el("li", {}, el("button", { type: "button", "data-id": person.id, onclick: () => void open(person.id) },
      face(person.face, person.title), el("b", {}, person.title),
      el("span", { class: "dim small" }, ago(person.last_seen))));
  }

  const editing = () => detail.contains(document.activeElement) && document.activeElement instanceof HTMLInputElement;

  /** @param {string} id @param {boolean} [focus] */
  async function open(id, focus = true) {
    try {
      const person = /** @type {WholePerson} */ (await get(`/people/${id}`, { limit: 30 }));
      shown = id;
      show(person);
    } catch (error) {
      say(error);
      return;
    }
    list.hidden = true;
    detail.hidden = false;
    if (focus) byId("person-title", HTMLHeadingElement).focus();
  }

  function close() {
    const id = shown;
    shown = null;
    detail.hidden = true;
    list.hidden = false;
    const card = [...list.querySelectorAll("button")].find((one) => one.dataset.id === id);
    card?.focus();
  }

  /** @param {WholePerson} person */
  function show(person) {
    const input = /** @type {HTMLInputElement} */ (el("input", {
      id: "new-name", name: "name", maxlength: 100, required: true, value: person.name ?? "", placeholder: "What is their name?", autocomplete: "off",
    }));
    const naming = el("form", { class: "naming admin", onsubmit: (event) => { event.preventDefault(); void name(person.id, input.value); } },
      el("label", { class: "sr", for: "new-name" }, "Name"), input, el("button", { type: "submit", class: "primary" }, "Save"),
      person.name ? el("button", { type: "button", onclick: () => void name(person.id, null) }, "Remove") : null);
    const facts = person.facts.filter((one) => one.aspect !== "identity"); // the name stands above
    detail.replaceChildren(
      el("p", {}, el("button", { type: "button", onclick: close }, "‹ Everybody")),
      el("div", { class: "who" }, face(person.face, person.title),
        el("div", {}, el("h3", { id: "person-title", tabindex: -1 }, person.title),
          el("p", { class: "dim small" }, `${SOURCES[/** @type {keyof SOURCES} */ (person.name_source)] ?? ""} · seen ${person.seen} times · last ${ago(person.last_seen)}`))),
      naming,
      person.faces.length > 1 ? el("div", { class: "faces", "aria-label": "Faces, best first", role: "group" }, ...person.faces.map((one, i) =>
        el("button", { type: "button", "aria-label": `Face ${i + 1}, ${ago(one.at)}`, disabled: !one.trace, onclick: () => { if (one.trace) void openMoment(one.trace); } },
          el("img", { src: one.path, alt: "", loading: "lazy" })))) : "",
      facts.length ? el("div", { class: "facts" }, el("h3", {}, "Known"), el("ul", { class: "lines" }, ...facts.map(fact))) : "",
      person.sightings.length ? el("div", { class: "rows" }, el("h3", {}, "Seen"), ...person.sightings.map((one) =>
        el("div", { class: "row" },
          el("button", { type: "button", onclick: () => void openMoment(one.trace) }, `${ago(one.start)} · ${one.camera} · ${one.text}`),
          notThem(person, one, again)))) : "",
      rows("Said", person.utterances.map((one) => ({ trace: one.trace, words: `${clock(one.start)} “${one.text}”` }))),
      person.names_heard.length ? el("details", {}, el("summary", {}, "Names heard"), el("ul", { class: "lines" },
        ...person.names_heard.map((one) => el("li", {}, `${one.name} (${one.source}, ${ago(one.at)})${one.accepted ? "" : ", not taken"}`)))) : "",
      mergeForm(person, known.filter((one) => one.id !== person.id), again),
      history(person, again),
      el("p", { class: "admin" }, el("button", { type: "button", class: "danger", onclick: () => forget({ person: person.id }) }, `Forget ${person.title}…`)),
    );
  }

  /** @param {import("./api.js").Fact} one */
  function fact(one) {
    const when = one.until ? ` (until ${ago(one.until)})` : "";
    const first = one.sources.find((id) => id.startsWith("t"));
    return el("li", { class: one.until ? "dim" : "" }, first
      ? el("button", { type: "button", class: "link", onclick: () => void openMoment(first) }, `${one.text}${when}`)
      : `${one.text}${when}`);
  }

  /**
   * After a correction.
   * @param {string} [id] who is shown then
   */
  async function again(id) {
    if (document.activeElement instanceof HTMLElement) document.activeElement.blur();
    if (id) shown = id;
    await load();
  }

  /** @param {string} heading @param {{ trace: string, words: string }[]} items */
  function rows(heading, items) {
    if (!items.length) return "";
    return el("div", { class: "rows" }, el("h3", {}, heading), ...items.map((one) =>
      el("button", { type: "button", onclick: () => void openMoment(one.trace) }, one.words)));
  }

  /** @param {string} id @param {string | null} words */
  async function name(id, words) {
    try {
      const person = /** @type {Person} */ (await send("PUT", `/people/${id}/name`, { name: words }));
      say(words === null ? `The name was taken away; now ${person.title}.` : `Called ${person.title} from now on, and in everything before.`);
      if (document.activeElement instanceof HTMLElement) document.activeElement.blur();
      await load();
    } catch (error) {
      say(error);
    }
  }

  return { load, open };
}
