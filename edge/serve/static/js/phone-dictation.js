// @ts-check
// Records a spoken question: only while a button says so. Raw sound by an AudioWorklet, which every browser has; what
// MediaRecorder gives differs between them.

const RATE = 16000; // Hz that the device hears
export const LONGEST_MS = 19000; // the device takes 20 s

/**
 * A WAV file of 16-bit PCM, mono, 16 kHz.
 * @param {Float32Array|number[]} samples -1..1
 * @returns {ArrayBuffer}
 */
export function wav(samples) {
  const bytes = new ArrayBuffer(44 + 2 * samples.length);
  const file = new DataView(bytes);
  /** @param {number} at @param {string} text */
  const word = (at, text) => [...text].forEach((letter, i) => file.setUint8(at + i, letter.charCodeAt(0)));
  word(0, 'RIFF');
  file.setUint32(4, 36 + 2 * samples.length, true);
  word(8, 'WAVEfmt ');
  file.setUint32(16, 16, true);
  file.setUint16(20, 1, true); // PCM
  file.setUint16(22, 1, true); // mono
  file.setUint32(24, RATE, true);
  file.setUint32(28, 2 * RATE, true);
  file.setUint16(32, 2, true);
  file.setUint16(34, 16, true);
  word(36, 'data');
  file.setUint32(40, 2 * samples.length, true);
  samples.forEach((sample, i) => file.setInt16(44 + 2 * i, Math.round(32767 * Math.min(1, Math.max(-1, sample))), true));
  return bytes;
}

/**
 * @param {Float32Array[]} parts
 * @param {number} rate Hz
 * @returns {Promise<Float32Array>} at 16 kHz
 */
async function resampled(parts, rate) {
  const length = parts.reduce((sum, part) => sum + part.length, 0);
  const whole = new Float32Array(length);
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  if (rate === RATE || !length) return whole;
  const offline = new OfflineAudioContext(1, Math.ceil((length * RATE) / rate), RATE);
  const buffer = offline.createBuffer(1, length, rate);
  buffer.copyToChannel(whole, 0);
  const source = offline.createBufferSource();
  source.buffer = buffer;
  source.connect(offline.destination);
  source.start();
  return (await offline.startRendering()).getChannelData(0);
}

/** One recording, from `open` to `end` or `drop`. */
export class Recording {
  constructor() {
    // In the gesture itself, before anything is waited for: iOS lets sound begin only there.
    this.context = new AudioContext();
    void this.context.resume();
    /** @type {Float32Array[]} */
    this.parts = [];
    /** @type {MediaStreamTrack|null} */
    this.track = null;
    this.over = false;
  }

  /**
   * Begin to record.
   * @param {MediaStreamTrack|null} microphone one that is open already: phones open it only once
   */
  async open(microphone) {
    const track = microphone?.readyState === 'live'
      ? microphone.clone()
      : (await navigator.mediaDevices.getUserMedia({ audio: { echoCancellation: true, autoGainControl: true } })).getAudioTracks()[0] ?? null;
    if (!track) throw new DOMException('', 'NotFoundError');
    this.track = track;
    track.enabled = true;
    await this.context.audioWorklet.addModule('/static/js/phone-recorder.js');
    if (this.over) return this.drop();
    const recorder = new AudioWorkletNode(this.context, 'recorder');
    recorder.port.onmessage = (event) => { if (!this.over) this.parts.push(event.data); };
    this.context.createMediaStreamSource(new MediaStream([track])).connect(recorder);
    recorder.connect(this.context.destination); // silent; some browsers run only what leads there
    void this.context.resume();
  }

  /** @returns {Promise<ArrayBuffer|null>} the recording as a WAV file; null: next to nothing was recorded */
  async end() {
    const { parts, context } = this;
    const rate = context.sampleRate;
    this.drop();
    const samples = await resampled(parts, rate);
    return samples.length < 0.3 * RATE ? null : wav(samples);
  }

  /** End, and keep nothing. */
  drop() {
    this.over = true;
    this.track?.stop();
    if (this.context.state !== 'closed') void this.context.close();
  }
}
