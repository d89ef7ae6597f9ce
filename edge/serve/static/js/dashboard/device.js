// @ts-check
/** The cameras and how the device is. */

import { get, send } from "./api.js";
import { byId, el, say } from "./dom.js";
import { ago, lasting, size } from "./time.js";
import { openPicture } from "./viewer.js";

/** @typedef {import("./api.js").Camera} Camera */
/** @typedef {import("./api.js").Status} Status */

const EVERY_MS = 10_000;

/**
 * @param {(cameras: Camera[]) => void} onCameras those that watch
 * @param {(names: string[]) => void} onRemembered those whose moments are kept, and those that watch
 */
export function device(onCameras, onRemembered) {
  const list = byId("camera-list", HTMLUListElement);
  const form = byId("camera-form", HTMLFormElement);
  const health = byId("health", HTMLElement);
  let shown = "";

  async function load() {
    try {
      const status = /** @type {Status} */ (await get("/status"));
      if (status.you.scopes.includes("admin")) document.body.dataset.admin = "";
      else delete document.body.dataset.admin;
      byId("device-name", HTMLSpanElement).textContent = status.device;
      byId("version", HTMLSpanElement).textContent = status.version && ` · ${status.version}`;
      cameras(status.cameras);
      onRemembered([...new Set([...status.memory.cameras, ...status.cameras.map((one) => one.name)])]);
      vitals(status);
    } catch (error) {
      say(error);
    }
  }

  /** @param {Camera[]} now */
  function cameras(now) {
    onCameras(now);
    const picture = JSON.stringify(now.map(({ last_frame, fps, segments, ...rest }) => rest));
    if (picture === shown && now.length) {
      // What is held in the hand stays: only the figures change.
      now.forEach((camera) => {
        const figures = [...list.children].find((one) => one instanceof HTMLElement && one.dataset.name === camera.name)?.querySelector(".figures");
        if (figures) figures.textContent = words(camera);
      });
      return;
    }
    shown = picture;
    list.replaceChildren(...(now.length ? now.map(card) : [el("li", { class: "dim" }, "No camera yet.")]));
  }

  /** @param {Camera} camera */
  function words(camera) {
    const parts = [camera.detail];
    if (camera.state === "live" && camera.fps) parts.push(`${camera.fps.toFixed(1)} pictures/s`);
    if (camera.width) parts.push(`${camera.width}×${camera.height}`);
    if (camera.segments) parts.push(`${camera.segments} moments`);
    if (camera.state !== "live" && camera.last_frame) parts.push(`last picture ${ago(camera.last_frame)}`);
    return parts.filter(Boolean).join(" · ");
  }

  /** @param {Camera} camera */
  function card(camera) {
    const path = `/cameras/${encodeURIComponent(camera.name)}`;
    const remove = el("button", { type: "button", class: "danger", onclick: () => {
      if (remove.dataset.sure) void act("DELETE", path);
      else {
        remove.dataset.sure = "yes";
        remove.textContent = "Really remove?";
        setTimeout(() => { delete remove.dataset.sure; remove.textContent = "Remove"; }, 4000);
      }
    } }, "Remove");
    return el("li", { class: "camera", "data-name": camera.name },
      el("div", { class: "top" }, el("b", {}, camera.name), el("span", { class: "badge", "data-state": camera.state }, camera.state)),
      el("p", { class: "dim small uri", title: camera.uri }, camera.pushed ? "sent by a phone or another publisher" : camera.uri),
      el("p", { class: "small figures" }, words(camera)),
      el("div", { class: "buttons" },
        el("button", { type: "button", onclick: () => openPicture(camera.name, `/api/v1${path}/snapshot?${Date.now()}`) }, "Snapshot"),
        camera.paused
          ? el("button", { type: "button", class: "admin", onclick: () => void act("POST", `${path}/resume`) }, "Resume")
          : el("button", { type: "button", class: "admin", onclick: () => void act("POST", `${path}/pause`) }, "Pause"),
        el("span", { class: "admin" }, remove)));
  }

  /** @param {string} method @param {string} path @param {unknown} [body] */
  async function act(method, path, body) {
    try {
      await send(method, path, body);
      await load();
      return true;
    } catch (error) {
      say(error);
      return false;
    }
  }

  /** @param {Status} status */
  function vitals(status) {
    const { memory } = status;
    /** @type {[string, (string | Node)[]][]} */
    const rows = [
      ["Remembered", [`${memory.traces} moments, ${memory.entities} people, ${memory.utterances} utterances`]],
      ["Memory", [`${size(memory.bytes)}, ${size(memory.free_bytes)} free`]],
      ["Process", [`${size(status.rss_bytes)}, ${Math.round(status.cpu_percent)} % of a core`]],
      ["Load", [meter(status.load[0], status.cores), ` ${status.load[0]} of ${status.cores} cores`]],
      ["Temperature", [status.temperature_c === null ? "" : `${status.temperature_c} °C`]],
      ["Loop lag", [`${status.loop_lag_ms.toFixed(1)} ms`]],
      ...Object.entries(status.channels).map(([name, one]) => /** @type {[string, (string | Node)[]]} */ ([
        name, [meter(one.items, one.bound), ` ${one.items}/${one.bound}${one.dropped ? `, ${one.dropped} dropped` : ""}`]])),
      ["Networks", [status.networks]],
      ["Running for", [lasting(status.uptime_s)]],
    ];
    health.replaceChildren(...rows.filter(([, parts]) => parts[0]).flatMap(([name, parts]) => [el("dt", {}, name), el("dd", {}, ...parts)]));
    byId("missing", HTMLUListElement).replaceChildren(...status.missing.map((one) => el("li", {}, one)));
  }

  /** @param {number} value @param {number} max */
  function meter(value, max) {
    return el("meter", { min: 0, max, high: max * 0.8, value: Math.min(value, max), "aria-hidden": "true" });
  }

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const data = new FormData(form);
    void act("POST", "/cameras", { name: data.get("name"), uri: data.get("uri") }).then((done) => {
      if (done) {
        form.reset();
        byId("add-camera", HTMLDetailsElement).open = false;
      }
    });
  });
  setInterval(() => { if (!document.hidden) void load(); }, EVERY_MS);
  return { load };
}
