// @ts-check
/** Puts the parts of the dashboard together. */

import { chat } from "./chat.js";
import { dayline } from "./day.js";
import { device } from "./device.js";
import { byId, settled } from "./dom.js";
import { Events } from "./events.js";
import { keep } from "./keep.js";
import { live } from "./live.js";
import { moments } from "./moments.js";
import { notices } from "./notices.js";
import { pairing } from "./pairing.js";
import { people } from "./people.js";
import { lookAgain } from "./viewer.js";

const VIEWS = ["live", "moments", "ask", "people", "device"];
const WORDS = { connecting: "Connecting…", live: "Live", failed: "Not connected" };

const events = new Events();
const view = live(events);
const day = dayline(goTo);
const list = moments((chosen) => void day.load(chosen), openPerson);
const everybody = people((found) => list.people(found));
const kept = keep();
let names = "";
const machine = device(view.cameras, (cameras) => {
  const now = cameras.join("\n");
  if (now === names) return; // what is chosen in a list stays chosen
  names = now;
  list.cameras(cameras);
  kept.cameras(cameras);
});
const told = notices();
chat(openPerson);
pairing();

/** @param {string} id */
function openPerson(id) {
  show("people");
  void everybody.open(id);
}

/** @param {string} date */
function goTo(date) {
  list.filter("day", date);
  void day.load(date);
}

/**
 * On phones, one part is seen at a time.
 * @param {string} name
 */
function show(name) {
  document.body.dataset.view = name;
  for (const link of document.querySelectorAll(".tabs a")) {
    if (link.getAttribute("href") === `#${name}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
}

function follow() {
  const name = location.hash.slice(1);
  if (VIEWS.includes(name)) {
    show(name);
    document.getElementById(name)?.focus({ preventScroll: true });
  }
}

const link = byId("link", HTMLParagraphElement);
events.on("link", (/** @type {keyof typeof WORDS} */ state) => {
  link.textContent = WORDS[state];
  link.dataset.state = state;
});
events.on("moment", settled(() => { void list.load(); day.refresh(); void everybody.load(); }, 300));
events.on("person", settled(() => { void everybody.load(); void list.load(); day.refresh(); }, 200));
events.on("camera", settled(() => void machine.load(), 200));
events.on("notice", told.tell);
events.on("reset", settled(() => { loadAll(); void lookAgain(); }, 200));

function loadAll() {
  void machine.load();
  void everybody.load();
  void list.load();
  void told.load();
  day.refresh();
}

window.addEventListener("hashchange", follow);
follow();
loadAll();
events.open();
