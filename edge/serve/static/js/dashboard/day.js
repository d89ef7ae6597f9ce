// @ts-check
/** A day's timeline to scrub: a strip of its moments, a slider, and what was there. */

import { get } from "./api.js";
import { byId, el, say, thumbnail } from "./dom.js";
import { clock, longDay } from "./time.js";
import { openMoment } from "./viewer.js";

/** @typedef {import("./api.js").Day} Day */
/** @typedef {import("./api.js").DayMoment} DayMoment */

const COLOURS = ["#14b8a6", "#f59e0b", "#6366f1", "#ec4899", "#84cc16", "#06b6d4"];

/** @param {(day: string) => void} onDay called when another day is gone to */
export function dayline(onDay) {
  const box = byId("day", HTMLDivElement);
  const title = byId("day-title", HTMLHeadingElement);
  const strip = byId("day-strip", HTMLCanvasElement);
  const scrub = byId("day-scrub", HTMLInputElement);
  const preview = byId("day-preview", HTMLButtonElement);
  const back = byId("day-back", HTMLButtonElement);
  const on = byId("day-on", HTMLButtonElement);
  /** @type {Day | null} */
  let day = null;
  let [from, to] = [0, 1];
  /** @type {DayMoment | null} */
  let at = null;

  /** @param {string} date empty: none @param {boolean} [keep] where the slider stands */
  async function load(date, keep = false) {
    if (!date) {
      box.hidden = true;
      day = null;
      return;
    }
    try {
      const got = /** @type {Day} */ (await get(`/days/${date}`));
      day = got;
    } catch (error) {
      say(error);
      return;
    }
    box.hidden = false;
    title.textContent = longDay(day.date);
    back.disabled = !day.previous;
    on.disabled = !day.next;
    const moments = day.moments;
    from = moments.length ? Date.parse(moments[0].start) : Date.parse(day.start);
    to = moments.length ? Math.max(...moments.map((one) => Date.parse(one.end))) : Date.parse(day.end);
    if (to - from < 60_000) to = from + 60_000;
    scrub.max = String(Math.round((to - from) / 1000));
    if (!keep) scrub.value = scrub.max;
    scrub.disabled = moments.length === 0;
    paint();
    pick();
  }

  function paint() {
    const ratio = window.devicePixelRatio || 1;
    const wide = strip.clientWidth;
    const high = strip.clientHeight;
    strip.width = Math.round(wide * ratio);
    strip.height = Math.round(high * ratio);
    const pen = strip.getContext("2d");
    if (!pen || !day || !wide) return;
    pen.scale(ratio, ratio);
    const style = getComputedStyle(document.documentElement);
    pen.fillStyle = style.getPropertyValue("--line");
    pen.fillRect(0, 4, wide, 16);
    for (const moment of day.moments) {
      const left = ((Date.parse(moment.start) - from) / (to - from)) * wide;
      const right = ((Date.parse(moment.end) - from) / (to - from)) * wide;
      pen.globalAlpha = moment.people.length ? 1 : 0.45;
      pen.fillStyle = COLOURS[Math.max(0, day.cameras.indexOf(moment.camera)) % COLOURS.length];
      pen.fillRect(left, 4, Math.max(2, right - left - 1), 16);
    }
    pen.globalAlpha = 1;
    pen.fillStyle = style.getPropertyValue("--dim");
    pen.font = "11px system-ui, sans-serif";
    pen.textBaseline = "bottom";
    const words = [new Date(from), new Date((from + to) / 2), new Date(to)];
    const first = day.moments[0]?.start ?? day.start;
    const offset = Date.parse(`${first.slice(0, 19)}Z`) - Date.parse(first);
    words.forEach((time, i) => {
      pen.textAlign = /** @type {CanvasTextAlign[]} */ (["left", "center", "right"])[i];
      pen.fillText(clock(new Date(time.getTime() + offset).toISOString()), (wide * i) / 2, high);
    });
  }

  function pick() {
    if (!day) return;
    const when = from + Number(scrub.value) * 1000;
    let best = null;
    let nearest = Infinity;
    for (const moment of day.moments) {
      const [start, end] = [Date.parse(moment.start), Date.parse(moment.end)];
      const away = when < start ? start - when : when > end ? when - end : 0;
      if (away < nearest) [best, nearest] = [moment, away];
    }
    if (best === at && preview.childElementCount) return;
    at = best;
    preview.disabled = !best;
    if (!best) {
      preview.replaceChildren(el("span", { class: "dim" }, "Nothing is remembered of this day."));
      return;
    }
    preview.replaceChildren(
      best.key_frame ? thumbnail(best.key_frame, "") : "",
      el("span", {}, el("b", {}, `${clock(best.start)} `), best.text || "Nothing was seen."),
    );
    scrub.setAttribute("aria-valuetext", `${clock(best.start)}: ${best.text.slice(0, 100)}`);
  }

  scrub.addEventListener("input", pick);
  preview.addEventListener("click", () => { if (at) void openMoment(at.id); });
  back.addEventListener("click", () => { if (day?.previous) onDay(day.previous); });
  on.addEventListener("click", () => { if (day?.next) onDay(day.next); });
  new ResizeObserver(paint).observe(strip);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", paint);

  return {
    load,
    /** Something was remembered: show it where its day is shown. */
    refresh() { if (day) void load(day.date, true); },
  };
}
