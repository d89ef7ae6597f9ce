// @ts-check
/** Rules in plain words, and what was told because of them. */

import { get, send } from "./api.js";
import { byId, el, say } from "./dom.js";
import { ago } from "./time.js";
import { openMoment } from "./viewer.js";

/** @typedef {import("./api.js").Rule} Rule */
/** @typedef {import("./api.js").Notice} Notice */

export function notices() {
  const rules = byId("rules-list", HTMLUListElement);
  const told = byId("notices-list", HTMLOListElement);
  const form = byId("rules-form", HTMLFormElement);
  const input = byId("rule-text", HTMLInputElement);

  async function load() {
    try {
      const [kept, page] = await Promise.all([get("/rules"), get("/alerts", { limit: 20 })]);
      const found = /** @type {Rule[]} */ (kept);
      rules.replaceChildren(...(found.length ? found.map(rule) : [el("li", { class: "dim" }, "Nothing yet. Say for example “tell me when the dog is on the sofa”.")]));
      const items = /** @type {Notice[]} */ (page.items);
      told.replaceChildren(...(items.length ? items.map(notice) : [el("li", { class: "dim" }, "Nothing was told yet.")]));
    } catch (error) {
      say(error);
    }
  }

  /** @param {Rule} one */
  function rule(one) {
    const paused = one.state === "paused";
    const why = el("ul", { class: "lines" });
    const reasons = /** @type {HTMLDetailsElement} */ (el("details", {}, el("summary", {}, "Why?"), why));
    reasons.addEventListener("toggle", async () => {
      if (!reasons.open) return;
      const found = /** @type {Notice[]} */ (await get(`/rules/${one.id}/why`).catch((error) => { say(error); return []; }));
      why.replaceChildren(...(found.length
        ? found.slice(0, 8).map((made) => el("li", {}, `${ago(made.at)} · ${made.outcome}: ${made.reason}`))
        : [el("li", { class: "dim" }, "Nothing has met it yet.")]));
    });
    return el("li", {}, el("span", { class: paused ? "dim" : "" }, one.text),
      one.next ? el("span", { class: "dim small" }, ` · next ${new Date(one.next).toLocaleString([], { weekday: "short", hour: "2-digit", minute: "2-digit" })}`) : "",
      el("span", { class: "buttons" },
        el("button", { type: "button", class: "small", onclick: () => void act("POST", `/rules/${one.id}/${paused ? "resume" : "pause"}`) }, paused ? "Resume" : "Pause"),
        el("button", { type: "button", class: "small", "aria-label": `Remove “${one.text}”`, onclick: () => void act("DELETE", `/rules/${one.id}`) }, "Remove")),
      reasons);
  }

  /** @param {Notice} one */
  function notice(one) {
    const trace = one.ground.find((id) => id.startsWith("t"));
    const words = `${ago(one.at)} · ${one.text}`;
    return el("li", { class: one.outcome === "digest" ? "dim" : "" }, trace
      ? el("button", { type: "button", class: "link", onclick: () => void openMoment(trace) }, words)
      : words);
  }

  /** @param {string} method @param {string} path @param {unknown} [body] */
  async function act(method, path, body) {
    try {
      const done = await send(method, path, body);
      if (method === "POST" && body) say(done.text);
      await load();
      return true;
    } catch (error) {
      say(error);
      return false;
    }
  }

  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (input.value.trim() && await act("POST", "/orders", { text: input.value })) input.value = "";
  });

  return {
    load,
    /** @param {{ text: string }} one */
    tell(one) {
      say(one.text);
      void load();
    },
  };
}
