// @ts-check
/** Inviting a phone: the code to scan, how it stands, and who has paired. The invitation ends with the dialog. */

import { get, send } from "./api.js";
import { byId, el, say } from "./dom.js";

/** @typedef {{ url: string, others: string[], expires: string, fingerprint: string, qr_png: string }} Invited */
/** @typedef {{ stage: string, wrong_tries: number, device: { id: string, name: string, scopes: string[] } | null, from: string | null, trouble: string | null }} Report */

const EVERY_MS = 1000;

export function pairing() {
  const button = byId("pair-phone", HTMLButtonElement);
  const dialog = byId("pairing", HTMLDialogElement);
  const code = byId("pairing-code", HTMLImageElement);
  const state = byId("pairing-state", HTMLParagraphElement);
  let timer = 0;
  let expires = 0;
  let open = false; // the invitation

  async function begin() {
    button.disabled = true;
    try {
      const made = /** @type {Invited} */ (await send("POST", "/pairing", {}));
      open = true;
      expires = new Date(made.expires).getTime();
      code.src = `data:image/png;base64,${made.qr_png}`;
      code.hidden = false;
      byId("pairing-print", HTMLParagraphElement).textContent = made.fingerprint;
      byId("pairing-links", HTMLUListElement).replaceChildren(...[made.url, ...made.others].map((one) => el("li", {}, one)));
      tell("Scan this with the phone’s camera.");
      dialog.showModal();
      byId("pairing-title", HTMLHeadingElement).focus();
      timer = window.setInterval(() => void look(), EVERY_MS);
    } catch (error) {
      say(error);
    } finally {
      button.disabled = false;
    }
  }

  async function look() {
    /** @type {Report} */
    let report;
    try {
      report = await get("/pairing");
    } catch {
      return; // asked again in a moment
    }
    if (!open) return;
    if (report.stage === "used" && report.device) {
      over(`Paired: ${report.device.name} (may ${report.device.scopes.join(" and ")}), from ${report.from}. Was it not you? Run “reflectworld devices revoke ${report.device.id}”.`);
    } else if (report.stage === "locked") {
      over(`Pairing is locked: ${report.wrong_tries} wrong tokens were tried, so somebody in your network guesses.`);
    } else if (report.stage !== "open" && report.stage !== "used") {
      over("The code is no longer good; close this and ask for a new one.");
    } else {
      const left = Math.max(0, Math.round((expires - Date.now()) / 60_000));
      tell(report.trouble ?? `Scan this with the phone’s camera. It works once, for ${left > 1 ? `${left} minutes` : "a minute"} more.`);
    }
  }

  /** @param {string} words */
  function tell(words) {
    if (state.textContent !== words) state.textContent = words;
  }

  /** @param {string} words */
  function over(words) {
    open = false;
    clearInterval(timer);
    code.hidden = true;
    tell(words);
  }

  button.addEventListener("click", () => void begin());
  dialog.addEventListener("close", () => {
    clearInterval(timer);
    code.removeAttribute("src");
    if (open) void send("DELETE", "/pairing").catch(() => undefined);
    open = false;
  });
}
