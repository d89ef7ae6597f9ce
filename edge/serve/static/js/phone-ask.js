// @ts-check
// Questions to the memory, typed or spoken, and their answers, shown and read aloud.

import { cameraTrouble } from './phone-camera.js';
import { LONGEST_MS, Recording } from './phone-dictation.js';
import { ask, askAloud, clock, judge } from './phone-memory.js';
import { hush, prime, speak, voice } from './phone-voice.js';

const HOLD_MS = 400; // a press that is longer ends with its release, a shorter one with the next

/** @typedef {import('./phone-memory.js').Answer} Answer */

/** @param {string} id @returns {any} */
const element = (id) => document.getElementById(id);
/** @type {Recording|null} */
let recording = null;
let pressed = 0; // when the press that began the recording began, ms; 0: by a key
let limit = 0;
let speaking = false;
/** @type {string|null} the answer that is shown, if it can be judged */
let judged = null;
/** @type {(quiet: boolean) => void} */
let hold = () => undefined;
/** @type {() => MediaStreamTrack|null} */
let microphone = () => null;

function quiet() {
  hold(recording !== null || speaking);
}

/**
 * @param {string} asked
 * @param {Promise<Answer>} coming
 * @param {boolean} spoken
 */
async function show(asked, coming, spoken) {
  hush();
  element('question-shown').textContent = asked;
  element('answer-text').textContent = 'Looking…';
  judged = null;
  for (const id of ['answer-when', 'answer-picture', 'answer-further', 'answer-thumbs', 'say', 'hush']) element(id).hidden = true;
  element('answer').hidden = false;
  try {
    const answer = await coming;
    element('question').value = '';
    element('question-shown').textContent = answer.understood ? `Understood: ${answer.understood}` : answer.question;
    element('answer-text').textContent = answer.answer;
    if (answer.start) {
      element('answer-when').textContent = [clock(answer.start), answer.camera].filter(Boolean).join(', ');
      element('answer-when').hidden = false;
    }
    if (answer.key_frame) {
      element('answer-picture').src = `/api/v1/pictures/${encodeURIComponent(answer.key_frame)}`;
      element('answer-picture').hidden = false;
    }
    if (answer.looks.length) {
      element('answer-further').textContent = `Looked further: ${answer.looks.map((look) => look.where).join('; ')}.`;
      element('answer-further').hidden = false;
    }
    judged = answer.id;
    element('answer-thumbs').hidden = !answer.id;
    element('answer-judged').textContent = '';
    for (const id of ['answer-right', 'answer-wrong']) element(id).setAttribute('aria-pressed', 'false');
    element('say').hidden = voice() === null;
    if ((spoken || element('aloud').checked) && !answer.silent) aloud();
  } catch (error) {
    element('answer-text').textContent = error instanceof Error ? error.message : 'The question was not answered.';
  }
  element('answer').scrollIntoView({ block: 'nearest' });
}

/** @param {boolean} good */
async function thumb(good) {
  const id = judged;
  if (!id) return;
  try {
    await judge(id, good);
    if (judged !== id) return;
    element('answer-right').setAttribute('aria-pressed', String(good));
    element('answer-wrong').setAttribute('aria-pressed', String(!good));
    element('answer-judged').textContent = 'Noted.';
  } catch (error) {
    element('answer-judged').textContent = error instanceof Error ? error.message : 'It was not noted.';
  }
}

/** @param {string} text */
function say(text) {
  speak(text, (now) => {
    speaking = now;
    element('hush').hidden = !now;
    quiet();
  });
}

function aloud() {
  say(element('answer-text').textContent);
}

/** @param {string} words what is heard now; empty: nothing */
function listening(words) {
  element('listening').hidden = words === '';
  element('listening-words').textContent = words;
  element('speak').setAttribute('aria-pressed', String(words !== ''));
  element('speak').querySelector('span').textContent = words ? 'Stop and ask' : 'Ask by voice';
}

/** @param {number} since when the press began, ms; 0: no press that can be held */
async function begin(since) {
  hush();
  pressed = since;
  let mine;
  try {
    mine = recording = new Recording();
    prime();
    quiet();
    listening('Opening the microphone…');
    await mine.open(microphone());
  } catch (error) {
    mine?.drop();
    if (mine && recording !== mine) return;
    recording = null;
    quiet();
    listening('');
    void show('', Promise.reject(new Error(cameraTrouble(error).replace('camera and microphone', 'the microphone'))), false);
    return;
  }
  if (recording !== mine) return;
  listening(pressed ? 'Listening… let go to ask.' : 'Listening… press again to ask.');
  limit = setTimeout(() => void finish(), LONGEST_MS);
}

async function finish() {
  const mine = recording;
  if (!mine) return;
  stop();
  const sound = await mine.end();
  if (sound) void show('', askAloud(sound), true);
  else void show('', Promise.reject(new Error('Nothing was recorded. Hold the button while you speak, or tap it before and after.')), false);
}

/** End the recording without asking. */
function drop() {
  const mine = recording;
  if (!mine) return;
  stop();
  mine.drop();
}

function stop() {
  clearTimeout(limit);
  recording = null;
  listening('');
  quiet();
}

function voices() {
  element('aloud-choice').hidden = voice() === null;
}

/** @param {PointerEvent} event */
function press(event) {
  if (event.button !== 0) return;
  event.preventDefault();
  element('speak').focus();
  if (recording) void finish();
  else {
    element('speak').setPointerCapture(event.pointerId);
    void begin(performance.now());
  }
}

function release() {
  if (!recording || !pressed) return;
  if (performance.now() - pressed > HOLD_MS) void finish();
  else {
    pressed = 0;
    void recording.context.resume();
    listening('Listening… tap again to ask.');
  }
}

/**
 * Read a text aloud if that is wanted.
 * @param {string} text
 */
export function mention(text) {
  if (element('aloud').checked) say(text);
}

/**
 * Set up asking.
 * @param {() => MediaStreamTrack|null} ear the microphone that is open already
 * @param {(quiet: boolean) => void} withhold asked to send no sound to the memory while the user or the phone itself talks
 */
export function asking(ear, withhold) {
  microphone = ear;
  hold = withhold;
  const button = element('speak');
  button.addEventListener('pointerdown', press);
  button.addEventListener('pointerup', release);
  button.addEventListener('pointercancel', drop);
  button.addEventListener('contextmenu', (/** @type {Event} */ event) => event.preventDefault());
  // Keys and screen readers click without a pointer.
  button.addEventListener('click', (/** @type {MouseEvent} */ event) => { if (event.detail === 0) void (recording ? finish() : begin(0)); });
  element('listening-cancel').addEventListener('click', drop);
  document.addEventListener('keydown', (event) => { if (event.key === 'Escape') drop(); });
  document.addEventListener('visibilitychange', () => { if (document.visibilityState === 'hidden') drop(); });
  element('ask').addEventListener('submit', (/** @type {SubmitEvent} */ event) => {
    event.preventDefault();
    const words = element('question').value.trim();
    if (words) void show(words, ask(words), false);
  });
  element('say').addEventListener('click', aloud);
  element('answer-right').addEventListener('click', () => void thumb(true));
  element('answer-wrong').addEventListener('click', () => void thumb(false));
  element('hush').addEventListener('click', hush);
  element('aloud').checked = localStorage.getItem('aloud') === '1';
  element('aloud').addEventListener('change', () => {
    localStorage.setItem('aloud', element('aloud').checked ? '1' : '0');
    if (!element('aloud').checked) hush();
  });
  if ('speechSynthesis' in window) speechSynthesis.addEventListener?.('voiceschanged', voices);
  voices();
}
