// @ts-check
// What the device remembers, as it happens, and the answers to questions.
// @ts-check

/**
 * @typedef {{trace: string, text: string, start: number|string, end: number|string}} MomentData
 * @typedef {{width: number, height: number, in_view: {label: string, name: string|null, score: number}[]}} SightData
 * @typedef {{question: string, answer: string, found: boolean, start: string|null, camera: string|null, key_frame: string|null, understood: string|null, silent: boolean, id: string|null, looks: {where: string}[]}} Answer
 */

/**
 * Those in view, each once, names first: “Anna, a cup, 2 persons”.
 * @param {SightData} sight
 * @returns {string}
 */
export function inView(sight) {
  const names = [...new Set(sight.in_view.flatMap((one) => (one.name ? [one.name] : [])))];
  /** @type {Map<string, number>} */
  const counts = new Map();
  for (const one of sight.in_view) if (!one.name) counts.set(one.label, (counts.get(one.label) ?? 0) + 1);
  const things = [...counts].map(([label, count]) => (count > 1 ? `${label} ×${count}` : label));
  return [...names, ...things].join(', ');
}

/**
 * When something was, as people say it.
 * @param {number|string} at UTC POSIX seconds, or ISO 8601
 * @returns {string}
 */
export function clock(at) {
  const date = typeof at === 'number' ? new Date(at * 1000) : new Date(at);
  if (Number.isNaN(date.getTime())) return '';
  const today = date.toDateString() === new Date().toDateString();
  return date.toLocaleString([], today ? { timeStyle: 'medium' } : { dateStyle: 'medium', timeStyle: 'short' });
}

const REOPEN_MS = 3000; // a stream that was refused is asked for again after this

/**
 * Listen to what happens. After a broken link the browser asks again by itself, from what it saw last; after a refusal
 * this does. `reset` says that something was missed.
 * @param {Record<string, (data: any) => void>} handlers by kind of event
 */
export function listen(handlers) {
  const source = new EventSource('/api/v1/events');
  for (const [kind, handle] of Object.entries(handlers)) {
    source.addEventListener(kind, (event) => handle(JSON.parse(/** @type {MessageEvent<string>} */ (event).data)));
  }
  source.addEventListener('error', () => {
    if (source.readyState !== EventSource.CLOSED) return;
    setTimeout(() => {
      listen(handlers);
      handlers.reset?.({});
    }, REOPEN_MS);
  });
}

/**
 * What a camera remembered of late, oldest first.
 * @param {string} camera
 * @param {Date} since
 * @param {number} limit
 * @returns {Promise<{text: string, start: string, camera: string}[]>}
 */
export async function recent(camera, since, limit) {
  const query = new URLSearchParams({ camera, since: since.toISOString(), limit: String(limit) });
  const answer = await fetch(`/api/v1/moments?${query}`).catch(() => null);
  return answer?.ok ? (await answer.json()).items.reverse() : [];
}

/**
 * Ask the memory.
 * @param {string} question
 * @returns {Promise<Answer>}
 */
export function ask(question) {
  return put('/api/v1/ask', 'application/json', JSON.stringify({ question }));
}

/**
 * Say whether an answer was right.
 * @param {string} id of the answer
 * @param {boolean} good
 * @returns {Promise<unknown>}
 */
export function judge(id, good) {
  return put(`/api/v1/answers/${encodeURIComponent(id)}/feedback`, 'application/json', JSON.stringify({ good }));
}

/**
 * Ask the memory by voice.
 * @param {ArrayBuffer} recording a WAV file
 * @returns {Promise<Answer>} with what was understood as `question`
 */
export function askAloud(recording) {
  return put('/api/v1/ask/voice', 'audio/wav', recording);
}

/**
 * @param {string} path
 * @param {string} type
 * @param {BodyInit} body
 * @returns {Promise<Answer>}
 */
async function put(path, type, body) {
  let answer;
  try {
    answer = await fetch(path, { method: 'POST', headers: { 'Content-Type': type }, body, signal: AbortSignal.timeout(30000) });
  } catch {
    throw new Error('The device cannot be reached. Ask again when the link is back.');
  }
  const said = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Error(said.detail ?? 'The question was not answered.');
  return said;
}

/**
 * Whether the device remembers nothing of a camera now.
 * @param {string} camera
 * @returns {Promise<boolean|null>} null: not known
 */
export async function isPaused(camera) {
  const answer = await fetch(`/api/v1/cameras/${encodeURIComponent(camera)}`).catch(() => null);
  return answer?.ok ? Boolean((await answer.json()).paused) : null;
}
