// @ts-check
/** The live view: what a camera sees now, with boxes and names. */

import { draw } from "./boxes.js";
import { byId, el } from "./dom.js";
import { Never, watch } from "./whep.js";

/** @typedef {import("./api.js").Camera} Camera */
/** @typedef {import("./events.js").Events} Events */

const PICTURE_MS = 500; // between pictures where there is no video
const AGAIN_MS = 15_000; // video that did not come is asked for again after this
const STALE_MS = 2500; // boxes older than this are taken away

/** @param {Events} events */
export function live(events) {
  const choice = byId("live-camera", HTMLSelectElement);
  const stage = byId("stage", HTMLDivElement);
  const picture = byId("live-picture", HTMLImageElement);
  const video = byId("live-video", HTMLVideoElement);
  const canvas = byId("live-boxes", HTMLCanvasElement);
  const empty = byId("live-empty", HTMLParagraphElement);
  const badge = byId("live-badge", HTMLParagraphElement);
  const seen = byId("live-seen", HTMLSpanElement);
  /** @type {Camera[]} */
  let cameras = [];
  let size = { width: 16, height: 9 };
  let boxesAt = 0;
  /** @type {(() => void) | null} */
  let endVideo = null;
  let waiting = new AbortController(); // for the first picture
  let round = 0; // counts choices: what belongs to an earlier one is dropped
  const noVideo = new Set(); // cameras that gave none
  let busy = false;

  /** @param {{ camera: string, width: number, height: number, in_view: { label: string, name: string | null, box: number[] }[] }} sight */
  function show(sight) {
    if (sight.camera !== choice.value) return;
    boxesAt = performance.now();
    size = { width: sight.width || size.width, height: sight.height || size.height };
    draw(canvas, size.width, size.height, sight.in_view.map((one) => ({ label: one.label, title: one.name, box: one.box })));
    const words = [...new Set(sight.in_view.map((one) => one.name ?? one.label))].join(", ") || "nothing";
    if (seen.textContent !== words) seen.textContent = words;
  }

  async function begin() {
    const mine = ++round;
    waiting.abort();
    waiting = new AbortController();
    endVideo?.();
    endVideo = null;
    video.hidden = picture.hidden = true;
    picture.removeAttribute("src");
    draw(canvas, 0, 0, []);
    seen.textContent = "nothing yet";
    state();
    await showVideo(mine);
  }

  /** @param {number} mine the round that it belongs to */
  async function showVideo(mine) {
    const camera = choice.value;
    if (!camera || mine !== round || noVideo.has(camera)) return;
    try {
      const end = await watch(video, camera, () => { if (mine === round) { video.hidden = true; void begin(); } }, waiting.signal);
      if (mine !== round) end();
      else {
        endVideo = end;
        video.hidden = false;
        picture.hidden = true;
        state();
      }
    } catch (error) {
      // Pictures one by one do meanwhile.
      if (error instanceof Never) noVideo.add(camera);
      else setTimeout(() => void showVideo(mine), AGAIN_MS);
    }
  }

  function state() {
    const camera = cameras.find((one) => one.name === choice.value);
    const shown = !picture.hidden || !video.hidden;
    badge.hidden = !camera;
    if (camera) {
      badge.textContent = camera.state;
      badge.dataset.state = camera.state;
      if (camera.width) size = { width: camera.width, height: camera.height };
    }
    empty.hidden = shown;
    empty.textContent = camera
      ? camera.detail || (camera.state === "live" ? "The first picture is on its way…" : `This camera is ${camera.state}.`)
      : "No camera yet. Add one under “Cameras and device”, or pair a phone.";
  }

  async function next() {
    if (busy || !choice.value || !video.hidden || document.hidden || stage.clientWidth === 0) return;
    const camera = cameras.find((one) => one.name === choice.value);
    if (!camera || ["failed", "ended"].includes(camera.state)) return;
    busy = true;
    const mine = round;
    try {
      const answer = await fetch(`/api/v1/cameras/${encodeURIComponent(camera.name)}/snapshot`);
      if (!answer.ok || mine !== round) return;
      const url = URL.createObjectURL(await answer.blob());
      const before = picture.src;
      picture.src = url;
      await picture.decode().catch(() => undefined);
      if (before.startsWith("blob:")) URL.revokeObjectURL(before);
      if (mine === round && video.hidden) picture.hidden = false;
      if (picture.naturalWidth) size = { width: picture.naturalWidth, height: picture.naturalHeight };
      state();
    } catch {
      // The link's own state says that the device is away.
    } finally {
      busy = false;
    }
  }

  events.on("sight", show);
  choice.addEventListener("change", () => void begin());
  setInterval(() => void next(), PICTURE_MS);
  setInterval(() => {
    if (boxesAt && performance.now() - boxesAt > STALE_MS) {
      boxesAt = 0;
      draw(canvas, 0, 0, []);
      seen.textContent = "nothing";
    }
  }, 500);

  return {
    /** @param {Camera[]} now */
    cameras(now) {
      cameras = now;
      const before = choice.value;
      const names = now.map((one) => one.name);
      if (names.join("\n") !== [...choice.options].map((one) => one.value).join("\n")) {
        choice.replaceChildren(...names.map((name) => el("option", { value: name }, name)));
        const first = now.find((one) => one.state === "live") ?? now[0];
        choice.value = names.includes(before) ? before : first?.name ?? "";
      }
      choice.disabled = names.length === 0;
      if (choice.value !== before) void begin();
      else state();
    },
  };
}
