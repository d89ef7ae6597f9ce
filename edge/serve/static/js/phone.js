// @ts-check
// The phone page: this phone as a camera of the memory, and questions to it.
// @ts-check

import { asking, mention } from './phone-ask.js';
import { Camera, cameraTrouble } from './phone-camera.js';
import { Link } from './phone-link.js';
import { clock, inView, isPaused, listen, recent } from './phone-memory.js';

const KEPT = 6; // moments that are shown
const NOTICE_MS = 12000;
const TOLD = 64; // messages that are known to have been shown, the latest
const SIGHT_MS = 3000; // what was in view is no longer shown after this

/** @param {string} id @returns {any} */
const element = (id) => document.getElementById(id);
const wanted = new URLSearchParams(location.search).get('camera');
const camera = new Camera();
const link = new Link(wanted);
let name = wanted ?? '';
const opened = new Date();
/** @type {Set<string>} */
const told = new Set();
let sightTimer = 0;
let quiet = false; // a question is spoken or an answer is read: that is nothing to remember
let pausing = false; // this page is telling the device so

/** @param {string} words */
function complain(words) {
  element('trouble').textContent = words;
  element('trouble').hidden = words === '';
}

/**
 * @param {string} id
 * @param {boolean} pressed
 * @param {string} words
 */
function press(id, pressed, words) {
  element(id).setAttribute('aria-pressed', String(pressed));
  element(id).querySelector('span').textContent = words;
}

function show() {
  const running = camera.stream !== null;
  const state = running && link.paused && link.state === 'live' ? 'paused' : running ? link.state : 'idle';
  document.body.dataset.state = state;
  press('start', running, running ? 'Stop' : 'Start');
  press('mute', camera.muted, camera.muted ? 'Unmute' : 'Mute');
  press('pause', link.paused, link.paused ? 'Remember again' : 'Pause remembering');
  element('mute').disabled = !running;
  element('pause').disabled = !running;
  if (state === 'paused') element('state').textContent = 'Paused: nothing is remembered';
  if (state !== 'live') element('in-view').hidden = true;
  document.querySelector('.view')?.classList.toggle('mirrored', camera.facing === 'user');
}

/** What the memory gets now. */
function send() {
  return link.use(camera.picture, quiet ? null : camera.sound);
}

async function openCamera() {
  await camera.open();
  const preview = /** @type {HTMLVideoElement} */ (element('preview'));
  preview.srcObject = camera.stream;
  await preview.play().catch(() => undefined); // it plays with the next tap
  element('switch').disabled = !(await camera.several());
  await send();
}

async function start() {
  complain('');
  element('start').disabled = true;
  try {
    await openCamera();
    await camera.keepAwake();
    sessionStorage.setItem('publishing', '1');
    link.start();
  } catch (error) {
    camera.close();
    complain(cameraTrouble(error));
  } finally {
    element('start').disabled = false;
    show();
  }
}

async function stop() {
  sessionStorage.removeItem('publishing');
  camera.close();
  camera.letSleep();
  element('preview').srcObject = null;
  element('switch').disabled = true;
  await link.stop();
  show();
}

async function turn() {
  try {
    await camera.turn();
    element('preview').srcObject = camera.stream;
    await send();
  } catch (error) {
    complain(cameraTrouble(error));
  }
  show();
}

/** @param {boolean} paused */
async function pause(paused) {
  pausing = true;
  try {
    await link.pause(paused);
    complain('');
  } catch {
    complain(paused ? 'The device was not told, but nothing is sent any more.' : 'The device was not told; tap again.');
  } finally {
    pausing = false;
  }
  if (link.state === 'live') element('state').textContent = 'Live';
  show();
}

/** The page is seen again, the network is back: see to camera and link at once. */
async function wake() {
  if (camera.stream === null) return;
  await camera.keepAwake();
  if (!camera.alive) await openCamera().catch((error) => complain(cameraTrouble(error)));
  link.wake();
}

/** @param {{text: string, start: number|string, camera: string|null}} moment */
function remember(moment) {
  if (name && moment.camera !== name) return;
  element('no-moments').hidden = true;
  const item = document.createElement('li');
  const time = document.createElement('time');
  time.textContent = clock(moment.start);
  item.append(time, moment.text);
  element('moments').prepend(item);
  while (element('moments').children.length > KEPT) element('moments').lastElementChild.remove();
}

/** Something was missed: ask for what was remembered since this page was opened. */
async function catchUp() {
  if (!name) return;
  const moments = await recent(name, opened, KEPT);
  if (!moments.length) return;
  element('moments').replaceChildren();
  moments.forEach(remember);
}

/** @param {{camera: string|null, width: number, height: number, in_view: any[]}} sight */
function see(sight) {
  if (sight.camera !== name || document.body.dataset.state !== 'live') return;
  const words = inView(sight);
  element('in-view').textContent = `In view: ${words}`;
  element('in-view').hidden = words === '';
  clearTimeout(sightTimer);
  sightTimer = setTimeout(() => { element('in-view').hidden = true; }, SIGHT_MS);
}

/**
 * Word of a rule: it comes over the link of the camera and over the stream of events, and is shown once.
 * @param {{id?: string, text?: string, title?: string}} notice
 */
function notify(notice) {
  if (notice.id) {
    if (told.has(notice.id)) return;
    told.add(notice.id);
    for (const old of told) if (told.size > TOLD) told.delete(old);
  }
  const item = document.createElement('p');
  item.textContent = notice.text ?? notice.title ?? 'Something happened.';
  element('notices').prepend(item);
  setTimeout(() => item.remove(), NOTICE_MS);
  navigator.vibrate?.(200);
  mention(item.textContent ?? '');
}

/**
 * Somebody else paused this camera, or lets it go on. The event only says that something changed: what holds is asked for.
 * @param {{camera: string|null, state: string}} change
 */
async function changed(change) {
  if (change.camera !== name || link.state !== 'live' || pausing) return;
  const paused = await isPaused(name);
  if (paused === null || paused === link.paused || pausing) return;
  link.paused = paused;
  await send();
  if (!paused) element('state').textContent = 'Live';
  show();
}

async function install() {
  if (!('serviceWorker' in navigator)) return;
  try {
    await navigator.serviceWorker.register('/phone/sw.js', { scope: '/phone', updateViaCache: 'none' });
  } catch {
    element('trust').textContent = 'This phone does not trust the device’s certificate, so the page cannot be installed. The pairing page tells how to trust it.';
    element('trust').hidden = false;
  }
}

link.addEventListener('state', (event) => {
  const { state, words } = /** @type {CustomEvent} */ (event).detail;
  element('state').textContent = words;
  if (state === 'failed') {
    complain(words);
    element('state').textContent = 'Refused';
  }
  show();
});
link.addEventListener('notice', (event) => notify(/** @type {CustomEvent} */ (event).detail));
link.addEventListener('camera', (event) => {
  name = /** @type {CustomEvent<string>} */ (event).detail;
  void isPaused(name).then((paused) => {
    if (paused && !link.paused) void link.pause(true).then(show, show);
  });
});
camera.addEventListener('ended', () => void wake());
element('start').addEventListener('click', () => void (camera.stream === null ? start() : stop()));
element('switch').addEventListener('click', () => void turn());
element('mute').addEventListener('click', () => {
  camera.muted = !camera.muted;
  void send();
  show();
});
element('pause').addEventListener('click', () => void pause(!link.paused));
document.addEventListener('visibilitychange', () => { if (document.visibilityState === 'visible') void wake(); });
window.addEventListener('online', () => void wake());
window.addEventListener('pageshow', () => void wake());
asking(() => camera.stream?.getAudioTracks()[0] ?? null, (now) => {
  if (now === quiet) return;
  quiet = now;
  void send();
});
show();
listen({ moment: remember, sight: see, notice: notify, camera: (change) => void changed(change), reset: () => void catchUp() });
void install();
// A page that published before it was loaded again goes on by itself where the browser allows that.
if (sessionStorage.getItem('publishing') === '1') void start();
