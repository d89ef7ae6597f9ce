// @ts-check
/** Questions and answers. An answer cites the moments that it rests on. */

import { send } from "./api.js";
import { byId, el, thumbnail } from "./dom.js";
import { ago } from "./time.js";
import { openMoment } from "./viewer.js";

/** @typedef {import("./api.js").Answer} Answer */

const EXAMPLES = ["Who was here today?", "Where did you last see a cup?", "What was said?", "When was the cat seen?"];
const CITED = 6;

/** @param {(id: string) => void} onPerson called when a cited person is chosen */
export function chat(onPerson) {
  const log = byId("chat", HTMLDivElement);
  const form = byId("ask-form", HTMLFormElement);
  const field = byId("question", HTMLInputElement);
  const empty = byId("chat-empty", HTMLDivElement);
  byId("chat-examples", HTMLParagraphElement).append(...EXAMPLES.map((words) =>
    el("button", { type: "button", class: "chip", onclick: () => void ask(words) }, words)));

  /** @param {string} question */
  async function ask(question) {
    empty.hidden = true;
    const answer = el("div", { class: "it", "aria-busy": "true" }, el("p", { class: "dim" }, "Looking…"));
    log.append(el("p", { class: "me" }, question), answer);
    answer.scrollIntoView({ block: "end" });
    try {
      fill(answer, /** @type {Answer} */ (await send("POST", "/ask", { question })));
    } catch (error) {
      answer.classList.add("trouble");
      answer.replaceChildren(el("p", {}, error instanceof Error ? error.message : String(error)));
    }
    answer.removeAttribute("aria-busy");
    answer.scrollIntoView({ block: "end" });
  }

  /** @param {HTMLElement} box @param {Answer} answer */
  function fill(box, answer) {
    const first = answer.evidence[0]?.trace ?? answer.cited.find((id) => id.startsWith("t")) ?? null;
    const traces = new Map(answer.evidence.map((one) => [one.id, one.trace]));
    const words = el("div", {}, el("p", {}, answer.answer),
      answer.start ? el("p", { class: "when" }, `${ago(answer.start)}${answer.camera ? ` · ${answer.camera}` : ""}`) : null);
    box.replaceChildren(
      answer.key_frame && first
        ? el("div", { class: "cite" },
          el("button", { type: "button", "aria-label": "Open the picture that it rests on", onclick: () => void openMoment(first, answer.key_frame) },
            thumbnail(answer.key_frame, "The picture that the answer rests on")), words)
        : words,
      answer.found && answer.cited.length
        ? el("p", { class: "chips" }, ...answer.cited.filter((id) => !id.startsWith("k")).slice(0, CITED).map((id) => {
          const trace = id.startsWith("t") ? id : traces.get(id);
          return el("button", { type: "button", class: "chip", disabled: !trace && !id.startsWith("p"), "aria-label": `Open ${id}`, onclick: () => { if (trace) void openMoment(trace); else onPerson(id); } }, id);
        }))
        : "",
      answer.looks.length ? el("p", { class: "dim small" }, `Looked further: ${answer.looks.map((look) => look.where).join("; ")}.`) : "",
      answer.id ? thumbs(answer.id) : "",
      ...answer.notes.map((note) => el("p", { class: "dim small" }, note)),
    );
  }

  /**
   * Say whether the answer was right.
   * @param {string} id
   */
  function thumbs(id) {
    const said = el("span", { class: "dim small", role: "status" });
    const [right, wrong] = [{ label: "Right", good: true }, { label: "Wrong", good: false }].map(({ label, good }) =>
      el("button", { type: "button", class: "chip", "aria-pressed": "false", onclick: () => void judge(good) }, label));

    /** @param {boolean} good */
    async function judge(good) {
      try {
        await send("POST", `/answers/${encodeURIComponent(id)}/feedback`, { good });
        right?.setAttribute("aria-pressed", String(good));
        wrong?.setAttribute("aria-pressed", String(!good));
        said.textContent = "Noted.";
      } catch (error) {
        said.textContent = error instanceof Error ? error.message : String(error);
      }
    }
    return el("p", { class: "chips" }, right, wrong, said);
  }

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const question = field.value.trim();
    if (!question) return;
    field.value = "";
    void ask(question);
  });
}
