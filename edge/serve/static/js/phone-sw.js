// @ts-check
// Keeps the shell of the phone page, so that it opens while the device is away. Nothing that was remembered is ever kept.
// @ts-check
/// <reference lib="webworker" />

const worker = /** @type {ServiceWorkerGlobalScope} */ (/** @type {unknown} */ (self));
const CACHE = 'phone-shell-1';
const SHELL = [
  '/phone',
  '/phone/manifest.webmanifest',
  '/static/css/phone.css',
  '/static/img/phone-192.png',
  '/static/js/phone.js',
  '/static/js/phone-ask.js',
  '/static/js/phone-camera.js',
  '/static/js/phone-dictation.js',
  '/static/js/phone-link.js',
  '/static/js/phone-memory.js',
  '/static/js/phone-recorder.js',
  '/static/js/phone-voice.js',
];

worker.addEventListener('install', (event) => {
  event.waitUntil(caches.open(CACHE).then((cache) => cache.addAll(SHELL)).then(() => worker.skipWaiting()));
});

worker.addEventListener('activate', (event) => {
  event.waitUntil(
    caches.keys()
      .then((names) => Promise.all(names.filter((name) => name.startsWith('phone-shell-') && name !== CACHE).map((name) => caches.delete(name))))
      .then(() => worker.clients.claim()),
  );
});

worker.addEventListener('fetch', (event) => {
  const url = new URL(event.request.url);
  if (event.request.method !== 'GET' || url.origin !== location.origin || !SHELL.includes(url.pathname)) return;
  event.respondWith(shell(event.request, url.pathname));
});

/**
 * The device's own answer if it gives one, else what was kept. A refusal is passed on: a revoked phone is told so.
 * @param {Request} request
 * @param {string} path
 * @returns {Promise<Response>}
 */
async function shell(request, path) {
  const cache = await caches.open(CACHE);
  try {
    const answer = await fetch(request);
    if (answer.ok) await cache.put(path, answer.clone());
    return answer;
  } catch (error) {
    const kept = await cache.match(path);
    if (kept) return kept;
    throw error;
  }
}
