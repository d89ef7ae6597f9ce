// @ts-check
/** What happens on the device, as it happens. The browser asks for what it missed after a break by itself. */

/** @typedef {"connecting" | "live" | "failed"} LinkState */

const KINDS = ["moment", "sight", "camera", "person", "notice", "reset"];
const AGAIN_MS = 3000;

export class Events extends EventTarget {
  constructor() {
    super();
    /** @type {EventSource | null} */
    this.source = null;
  }

  /** Begin, and begin again whenever the line was given up. */
  open() {
    this.tell("connecting");
    const source = new EventSource("/api/v1/events");
    this.source = source;
    source.addEventListener("open", () => this.tell("live"));
    source.addEventListener("error", () => {
      if (source.readyState === EventSource.CLOSED) {
        this.tell("failed");
        source.close();
        setTimeout(() => { this.open(); this.dispatchEvent(new CustomEvent("reset", { detail: {} })); }, AGAIN_MS);
      } else {
        this.tell("connecting");
      }
    });
    for (const kind of KINDS) {
      source.addEventListener(kind, (event) => {
        this.dispatchEvent(new CustomEvent(kind, { detail: JSON.parse(/** @type {MessageEvent} */ (event).data) }));
      });
    }
  }

  /** @param {LinkState} state */
  tell(state) {
    this.dispatchEvent(new CustomEvent("link", { detail: state }));
  }

  /**
   * @param {string} kind
   * @param {(data: any) => void} call
   */
  on(kind, call) {
    this.addEventListener(kind, (event) => call(/** @type {CustomEvent} */ (event).detail));
  }
}
