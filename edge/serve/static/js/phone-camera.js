// @ts-check
// Camera, microphone and a screen that stays on.
// @ts-check

/** @typedef {'environment'|'user'} Facing */

const WORDS = /** @type {Record<string, string>} */ ({
  NotAllowedError: 'The camera was not allowed. Allow camera and microphone for this page in the browser’s settings, then start again.',
  NotFoundError: 'No camera was found on this device.',
  NotReadableError: 'The camera is used by another app. Close that, then start again.',
  OverconstrainedError: 'This camera cannot be used.',
});

/**
 * What is wrong with the camera, in words.
 * @param {unknown} error
 * @returns {string}
 */
export function cameraTrouble(error) {
  if (!window.isSecureContext || !navigator.mediaDevices) {
    return 'The browser gives no camera to a page without a trusted connection. Open the page by its https address and accept or trust the device’s certificate.';
  }
  const name = error instanceof DOMException ? error.name : '';
  return WORDS[name] ?? 'The camera cannot be started. Close other apps that use it and try again.';
}

/** The camera and the microphone of this phone. Event `ended`: the system took them away. */
export class Camera extends EventTarget {
  constructor() {
    super();
    /** @type {Facing} */
    this.facing = 'environment';
    this.muted = false;
    /** @type {MediaStream|null} */
    this.stream = null;
    /** @type {WakeLockSentinel|null} */
    this.lock = null;
  }

  get picture() {
    return this.stream?.getVideoTracks()[0] ?? null;
  }

  get sound() {
    return this.muted ? null : this.stream?.getAudioTracks()[0] ?? null;
  }

  /** Whether both still deliver. */
  get alive() {
    return this.stream !== null && this.stream.getTracks().every((track) => track.readyState === 'live');
  }

  /** Open both; called from a tap, as iOS wants. */
  async open() {
    this.close();
    const stream = await navigator.mediaDevices.getUserMedia({
      video: { facingMode: { ideal: this.facing }, width: { ideal: 1280 }, height: { ideal: 720 }, frameRate: { ideal: 24, max: 30 } },
      audio: { echoCancellation: true, noiseSuppression: false, autoGainControl: true },
    });
    this.stream = stream;
    for (const track of stream.getTracks()) {
      track.addEventListener('ended', () => {
        if (this.stream === stream) this.dispatchEvent(new Event('ended'));
      });
    }
  }

  /** Take the other camera; phones open only one at a time, so the first is closed before. */
  async turn() {
    this.facing = this.facing === 'environment' ? 'user' : 'environment';
    await this.open();
  }

  /** @returns {Promise<boolean>} whether there is another camera */
  async several() {
    const devices = await navigator.mediaDevices.enumerateDevices();
    return devices.filter((one) => one.kind === 'videoinput').length > 1;
  }

  close() {
    const stream = this.stream;
    this.stream = null;
    for (const track of stream?.getTracks() ?? []) track.stop();
  }

  /** Keep the screen on; the system lets go of it when the page is hidden, so ask again when it is shown. */
  async keepAwake() {
    if (!('wakeLock' in navigator) || document.visibilityState !== 'visible') return;
    if (this.lock && !this.lock.released) return;
    try {
      this.lock = await navigator.wakeLock.request('screen');
    } catch {
      this.lock = null; // low battery: the screen may sleep, and the link comes back when it wakes
    }
  }

  letSleep() {
    void this.lock?.release();
    this.lock = null;
  }
}
