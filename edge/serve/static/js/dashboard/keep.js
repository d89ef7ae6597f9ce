// @ts-check
/** What is not to be remembered: pausing everything, and forgetting, which is shown before it is done. */

import { get, send } from "./api.js";
import { byId, el, say } from "./dom.js";
import { ago } from "./time.js";

/** @typedef {{ paused: boolean, since: string | null, until: string | null }} Paused */
/** @typedef {{ person?: string, since?: string, until?: string, camera?: string, items?: string[], everything?: boolean }} Target */
/** @typedef {{ token: string, text: string, counts: Record<string, number>, beyond: string[] }} Preview */

const EVERY_MS = 15_000;

const dialog = byId("forgetting", HTMLDialogElement);
const choice = byId("forget-form", HTMLFormElement);
const preview = byId("forget-preview", HTMLDivElement);
const sure = byId("forget-sure", HTMLButtonElement);
/** @type {{ target: Target, token: string } | null} */
let shown = null;

/**
 * Show what would be forgotten; it is done only if that is confirmed.
 * @param {Target | null} target null: the owner chooses in the dialog
 */
export function forget(target = null) {
  choice.hidden = target !== null;
  clear();
  if (!dialog.open) dialog.showModal();
  byId("forgetting-title", HTMLHeadingElement).focus();
  if (target) void look(target);
}

function clear() {
  shown = null;
  sure.disabled = true;
  preview.replaceChildren();
}

/** @param {Target} target */
async function look(target) {
  clear();
  preview.replaceChildren(el("p", { class: "dim" }, "Looking what that takes along…"));
  try {
    const found = /** @type {Preview} */ (await send("POST", "/forget/preview", target));
    const counts = Object.entries(found.counts).filter(([, many]) => many > 0);
    shown = { target, token: found.token };
    sure.disabled = false;
    preview.replaceChildren(
      el("p", {}, found.text),
      counts.length ? el("details", {}, el("summary", {}, "What goes"), el("ul", { class: "lines" },
        ...counts.map(([name, many]) => el("li", {}, `${name.replaceAll("_", " ")}: ${many}`)))) : "",
      ...found.beyond.map((one) => el("p", { class: "odd" }, one)),
      el("p", { class: "dim small" }, "It cannot be undone: it is taken out of the files, with all that was made of it."));
  } catch (error) {
    preview.replaceChildren(el("p", { class: "odd" }, error instanceof Error ? error.message : String(error)));
  }
}

async function done() {
  if (!shown) return;
  const { target, token } = shown;
  clear();
  preview.replaceChildren(el("p", { role: "status" }, "Forgetting…"));
  try {
    const gone = /** @type {Preview} */ (await send("POST", "/forget", { ...target, token }));
    dialog.close();
    say(`Forgotten: ${gone.text}`);
  } catch (error) {
    preview.replaceChildren(el("p", { class: "odd" }, error instanceof Error ? error.message : String(error)));
  }
}

/** The chosen target of the form; null: nothing was chosen. @returns {Target | null} */
function chosen() {
  const data = new FormData(choice);
  const what = String(data.get("what"));
  if (what === "everything") return { everything: true };
  const camera = String(data.get("camera") ?? "");
  if (what === "camera") return camera ? { camera } : null;
  const [since, until] = [String(data.get("since") ?? ""), String(data.get("until") ?? "")];
  // The fields hold local time without a zone; the device is told an instant.
  return since && until ? { since: new Date(since).toISOString(), until: new Date(until).toISOString() } : null;
}

/**
 * @returns {{ cameras: (names: string[]) => void }} tell it which cameras there are to choose from
 */
export function keep() {
  const button = byId("pause-all", HTMLButtonElement);
  const cameras = byId("forget-camera", HTMLSelectElement);
  let paused = false;

  /** @param {Paused} now */
  function tell(now) {
    paused = now.paused;
    button.setAttribute("aria-pressed", String(paused));
    button.textContent = paused ? "Remember again" : "Pause remembering";
    button.title = now.paused && now.until ? `Paused until ${ago(now.until)}` : "";
    document.body.toggleAttribute("data-paused", paused);
  }

  async function load() {
    if (!("admin" in document.body.dataset)) return; // only who may change it is told
    try {
      tell(await get("/pause"));
    } catch {
      // asked again in a moment
    }
  }

  button.addEventListener("click", async () => {
    try {
      tell(await send("POST", paused ? "/resume" : "/pause", paused ? undefined : {}));
      say(paused ? "Nothing is remembered until you say so." : "Remembering goes on.");
    } catch (error) {
      say(error);
    }
  });
  byId("forget-some", HTMLButtonElement).addEventListener("click", () => forget());
  choice.addEventListener("change", () => {
    const what = String(new FormData(choice).get("what"));
    for (const part of choice.querySelectorAll("[data-for]")) {
      if (part instanceof HTMLElement) part.hidden = part.dataset.for !== what;
    }
    const target = chosen();
    if (target) void look(target);
    else clear();
  });
  sure.addEventListener("click", () => void done());
  setInterval(() => { if (!document.hidden) void load(); }, EVERY_MS);
  setTimeout(() => void load(), 1000);
  return {
    cameras: (names) => cameras.replaceChildren(el("option", { value: "" }, "choose"), ...names.map((one) => el("option", {}, one))),
  };
}
