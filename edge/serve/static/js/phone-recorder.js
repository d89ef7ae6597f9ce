// @ts-check
// In the thread of the sound: hands on what the microphone hears. Loaded by phone-dictation.js.

/** @typedef {{port: MessagePort}} Processor */

class Recorder extends /** @type {new () => Processor} */ (Reflect.get(globalThis, 'AudioWorkletProcessor')) {
  /**
   * @param {Float32Array[][]} inputs
   * @returns {boolean} whether there may be more
   */
  process(inputs) {
    const heard = inputs[0]?.[0];
    if (heard) this.port.postMessage(heard.slice());
    return true;
  }
}

Reflect.get(globalThis, 'registerProcessor')('recorder', Recorder);
