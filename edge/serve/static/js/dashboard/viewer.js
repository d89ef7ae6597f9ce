// @ts-check
/** The dialog that shows a moment: its key frames with boxes, its lines and what was said. */

import { ApiError, get } from "./api.js";
import { draw } from "./boxes.js";
import { byId, el, say, thumbnail } from "./dom.js";
import { forget } from "./keep.js";
import { clock, date, longDay, span } from "./time.js";

/** @typedef {import("./api.js").WholeMoment} WholeMoment */
/** @typedef {import("./api.js").KeyFrame} KeyFrame */
/** @typedef {import("./api.js").Found} Found */

const ALIKE = 8; // moments

const dialog = byId("viewer", HTMLDialogElement);
const title = byId("viewer-title", HTMLHeadingElement);
const body = byId("viewer-body", HTMLDivElement);
const before = byId("viewer-before", HTMLButtonElement);
const after = byId("viewer-after", HTMLButtonElement);
/** @type {WholeMoment | null} */
let shown = null;

/**
 * Show a moment.
 * @param {string} id of a trace
 * @param {string | null} [frame] the key frame to begin with
 */
export async function openMoment(id, frame = null) {
  try {
    const moment = /** @type {WholeMoment} */ (await get(`/moments/${id}`));
    shown = moment;
    fill(moment, frame);
  } catch (error) {
    say(error);
    return;
  }
  if (!dialog.open) dialog.showModal(); // focus comes back to where it was when it closes
  title.focus();
}

/**
 * Show one picture.
 * @param {string} heading
 * @param {string} source
 */
export function openPicture(heading, source) {
  shown = null;
  title.textContent = heading;
  body.replaceChildren(el("figure", { class: "shot" }, el("img", { src: source, alt: heading })));
  before.hidden = after.hidden = true;
  if (!dialog.open) dialog.showModal();
  title.focus();
}

/** Something was forgotten: if it is what is shown, it is shown no more. */
export async function lookAgain() {
  if (!shown) return;
  try {
    await get(`/moments/${shown.id}`);
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) dialog.close();
  }
}

/** @param {WholeMoment} moment @param {string | null} frame */
function fill(moment, frame) {
  title.textContent = `${longDay(date(moment.start))}, ${span(moment.start, moment.end)} · ${moment.camera}`;
  const pictures = [...moment.pictures].sort((a, b) => Number(b.id === frame) - Number(a.id === frame));
  body.replaceChildren(
    ...pictures.slice(0, 1).map(shot),
    pictures.length > 1 ? el("div", { class: "faces" }, ...moment.pictures.map((one) =>
      el("button", { type: "button", "aria-label": `Picture at ${clock(one.at)}`, onclick: () => fill(moment, one.id) },
        el("img", { src: `/api/v1/pictures/${one.id}`, alt: "" })))) : "",
    ...moment.unusual.map((one) => el("p", { class: "odd" }, el("b", {}, "Unusual: "), one)),
    el("p", {}, moment.text || "Nothing was seen; only speech."),
    moment.lines.length > 1 ? el("ol", { class: "lines" }, ...moment.lines.map((line) =>
      el("li", {}, el("time", { datetime: line.at }, clock(line.at)), line.text))) : "",
    ...moment.utterances.map((said) =>
      el("p", { class: "quote" }, el("b", {}, `${said.speaker_name ?? "somebody"}: `), `“${said.text}”`)),
    moment.decisions.length ? el("details", {}, el("summary", {}, "Why these people"), el("ul", { class: "lines" },
      ...moment.decisions.map((one) => el("li", {}, `${one.outcome}: ${one.reason}`)))) : "",
    moment.pictures.length ? alike(moment.id) : "",
    el("p", { class: "dim small" }, moment.id, " ",
      el("button", { type: "button", class: "link admin", onclick: () => forget({ items: [moment.id] }) }, "Forget this moment…")),
  );
  before.hidden = after.hidden = false;
  before.disabled = !moment.before;
  after.disabled = !moment.after;
}

/**
 * Moments that look like this one, asked for when they are opened.
 * @param {string} id
 * @returns {HTMLElement}
 */
function alike(id) {
  const list = el("div", { class: "faces", role: "list" });
  const part = el("details", { class: "alike" }, el("summary", {}, "Similar moments"), list);
  part.addEventListener("toggle", async () => {
    if (list.childElementCount) return;
    list.replaceChildren(el("p", { class: "dim" }, "Looking…"));
    try {
      const found = /** @type {Found[]} */ (await get(`/moments/${id}/similar`, { limit: ALIKE }));
      list.replaceChildren(...(found.length ? found.map((one) => el("button", { type: "button", role: "listitem",
        "aria-label": `Open ${one.id}: ${longDay(date(one.start))}, ${clock(one.start)}`, onclick: () => void openMoment(one.id) },
        one.key_frame ? thumbnail(one.key_frame, "") : "", el("small", {}, `${date(one.start)} ${clock(one.start)}`))) :
        [el("p", { class: "dim" }, "Nothing looks like it.")]));
    } catch (error) {
      list.replaceChildren(el("p", { class: "dim" }, error instanceof Error ? error.message : String(error)));
    }
  });
  return part;
}

/** @param {KeyFrame} frame @returns {HTMLElement} */
function shot(frame) {
  const image = /** @type {HTMLImageElement} */ (el("img", {
    src: `/api/v1/pictures/${frame.id}`,
    width: frame.width,
    height: frame.height,
    alt: `Key frame with ${frame.marks.map((one) => one.title ?? one.label).join(", ") || "nothing marked"}`,
  }));
  const canvas = /** @type {HTMLCanvasElement} */ (el("canvas", { "aria-hidden": "true" }));
  const paint = () => draw(canvas, frame.width, frame.height, frame.marks);
  image.addEventListener("load", paint);
  new ResizeObserver(paint).observe(image);
  return el("figure", { class: "shot" }, image, canvas, el("figcaption", {}, `${frame.id} · ${clock(frame.at)}`));
}

before.addEventListener("click", () => { if (shown?.before) void openMoment(shown.before); });
after.addEventListener("click", () => { if (shown?.after) void openMoment(shown.after); });
dialog.addEventListener("keydown", (event) => {
  if (event.key === "ArrowLeft") before.click();
  if (event.key === "ArrowRight") after.click();
});
dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
