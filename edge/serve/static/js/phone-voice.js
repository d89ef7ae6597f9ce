// @ts-check
// Reads answers aloud, with a voice of this phone only: others send the words to a server.
// @ts-check

/**
 * The voice to read with.
 * @template {{localService: boolean, lang: string, default: boolean}} V
 * @param {V[]} voices
 * @param {string} language for example en-GB
 * @returns {V|null} null: none on this phone
 */
export function localVoice(voices, language) {
  const own = voices.filter((voice) => voice.localService && /^en\b/i.test(voice.lang));
  return own.find((voice) => voice.lang.toLowerCase() === language.toLowerCase()) ?? own.find((voice) => voice.default) ?? own[0] ?? null;
}

/** @returns {SpeechSynthesisVoice|null} */
export function voice() {
  return 'speechSynthesis' in window ? localVoice(speechSynthesis.getVoices(), navigator.language) : null;
}

/**
 * Read a text.
 * @param {string} text
 * @param {(speaking: boolean) => void} changed
 * @returns {boolean} whether there is a voice
 */
export function speak(text, changed) {
  const chosen = voice();
  if (!chosen) return false;
  speechSynthesis.cancel();
  const words = new SpeechSynthesisUtterance(text);
  words.voice = chosen;
  words.lang = chosen.lang;
  words.addEventListener('start', () => changed(true));
  words.addEventListener('end', () => changed(false));
  words.addEventListener('error', () => changed(false));
  speechSynthesis.speak(words);
  return true;
}

let primed = false;

/** Say nothing, in a gesture: iOS lets a page speak later only after that. */
export function prime() {
  if (primed || !('speechSynthesis' in window)) return;
  primed = true;
  speechSynthesis.speak(new SpeechSynthesisUtterance(''));
}

export function hush() {
  if ('speechSynthesis' in window) speechSynthesis.cancel();
}
