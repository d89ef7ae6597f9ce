// @ts-check
/** Putting right who is who: "not this person", two who are one, and taking it back. */

import { get, send } from "./api.js";
import { el, say } from "./dom.js";
import { ago } from "./time.js";

/** @typedef {import("./api.js").Person} Person */
/** @typedef {import("./api.js").Seen} Seen */
/** @typedef {import("./api.js").Correction} Correction */
/** @typedef {(id?: string) => Promise<void>} Again */

/**
 * A button that says that one sighting is somebody else. It asks once more, in place, before anything is done.
 * @param {Person} person
 * @param {Seen} sighting
 * @param {Again} again
 */
export function notThem(person, sighting, again) {
  const button = /** @type {HTMLButtonElement} */ (el("button", {
    type: "button", class: "small admin", "aria-label": `Not ${person.title}, ${ago(sighting.start)}`,
  }, "Not them"));
  let sure = false;
  button.addEventListener("click", async () => {
    if (!sure) {
      sure = true;
      button.textContent = "Sure?";
      button.classList.add("sure");
      setTimeout(() => { sure = false; button.textContent = "Not them"; button.classList.remove("sure"); }, 4000);
      return;
    }
    await run(`/people/${person.id}/not`, { sightings: [sighting.id] }, again);
  });
  return button;
}

/**
 * Say that another one is this person, too.
 * @param {Person} person
 * @param {Person[]} others
 * @param {Again} again
 */
export function mergeForm(person, others, again) {
  if (!others.length) return "";
  const choice = /** @type {HTMLSelectElement} */ (el("select", { id: "merge-with", name: "other" },
    ...others.map((one) => el("option", { value: one.id }, `${one.title} (${one.id})`))));
  const note = el("p", { class: "dim small", role: "status" });
  const form = el("form", { class: "naming admin" },
    el("label", { for: "merge-with" }, `The same as ${person.title}:`), choice, el("button", { type: "submit" }, "Join"));
  let told = "";
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const other = choice.value;
    try {
      if (told !== other) { // first say what it will do
        const would = await send("POST", `/people/${person.id}/merge`, { other, preview: true });
        note.textContent = `${would.text} Press again to do it.`;
        told = other;
        return;
      }
    } catch (error) {
      say(error);
      return;
    }
    await run(`/people/${person.id}/merge`, { other }, again);
  });
  return el("details", { class: "admin" }, el("summary", {}, "Somebody else is the same person"), form, note);
}

/**
 * What was put right about a person, with a way back.
 * @param {Person} person
 * @param {Again} again
 */
export function history(person, again) {
  const list = el("ul", { class: "lines" });
  const box = /** @type {HTMLDetailsElement} */ (el("details", {}, el("summary", {}, "Put right"), list));
  box.addEventListener("toggle", async () => {
    if (!box.open) return;
    try {
      const found = /** @type {Correction[]} */ (await get("/corrections", { person: person.id, limit: 50 }));
      list.replaceChildren(...(found.length ? found.map((one) => el("li", {}, `${ago(one.at)}: ${one.text} `,
        one.undone_at ? el("span", { class: "dim" }, "(undone)")
          : el("button", { type: "button", class: "small admin", onclick: () => void run(`/corrections/${one.id}/undo`, {}, again) }, "Undo")))
        : [el("li", { class: "dim" }, "Nothing yet.")]));
    } catch (error) {
      say(error);
    }
  });
  return box;
}

/** @param {string} path @param {unknown} body @param {Again} again */
async function run(path, body, again) {
  try {
    const done = await send("POST", path, body);
    const made = /** @type {Correction} */ (done.correction ?? done);
    say(made.text);
    await again(made.kind === "merge" ? made.person : undefined);
  } catch (error) {
    say(error);
  }
}
