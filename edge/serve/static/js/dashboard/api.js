// @ts-check
/** The API of the device. The forms are described at /api/docs. */

/** @typedef {{ id: string, title: string }} Who */
/** @typedef {{ id: string, trace: string, start: string, end: string, speaker: string | null, speaker_name: string | null, text: string }} Words */
/** @typedef {{ id: string, camera: string, start: string, end: string, text: string, lines: { at: string, text: string }[], entities: Who[], utterances: Words[], key_frames: string[], unusual: string[] }} Moment */
/** @typedef {{ label: string, entity: string | null, title: string | null, box: [number, number, number, number] }} Mark */
/** @typedef {{ id: string, at: string, width: number, height: number, marks: Mark[] }} KeyFrame */
/** @typedef {{ id: string, trace: string, camera: string, label: string, entity: string | null, start: string, end: string, text: string, score: number }} Seen */
/** @typedef {Moment & { observations: Seen[], pictures: KeyFrame[], decisions: { id: string, outcome: string, entity: string | null, reason: string }[], before: string | null, after: string | null }} WholeMoment */
/** @typedef {{ id: string, camera: string, start: string, end: string, text: string, people: string[], key_frame: string | null }} DayMoment */
/** @typedef {{ date: string, start: string, end: string, moments: DayMoment[], people: Who[], cameras: string[], previous: string | null, next: string | null }} Day */
/** @typedef {{ id: string, title: string, name: string | null, name_source: string, kind: string, first_seen: string, last_seen: string, seen: number, face: string | null }} Person */
/** @typedef {{ text: string, aspect: string, since: string | null, until: string | null, sources: string[] }} Fact */
/** @typedef {{ id: string, kind: string, person: string, other: string | null, undone_at: string | null, at: string, text: string }} Correction */
/** @typedef {{ id: string, kind: string, text: string, state: string, next: string | null, last_told: string | null }} Rule */
/** @typedef {{ id: string, rule: string | null, at: string, outcome: string, reason: string, text: string, ground: string[], read: boolean }} Notice */
/** @typedef {Person & { facts: Fact[], faces: { path: string, at: string, trace: string | null }[], sightings: Seen[], utterances: Words[], names_heard: { name: string, source: string, at: string, accepted: boolean }[] }} WholePerson */
/** @typedef {{ id: string, level: string, trace: string, camera: string, start: string, end: string, score: number, text: string, entities: Who[], key_frame: string | null }} Found */
/** @typedef {{ question: string, answer: string, found: boolean, start: string | null, camera: string | null, key_frame: string | null, cited: string[], evidence: Found[], notes: string[], ms: number, id: string | null, looks: { memory: string, where: string, helped: boolean }[] }} Answer */
/** @typedef {{ name: string, uri: string, state: string, detail: string, last_frame: string | null, fps: number, width: number, height: number, segments: number, paused: boolean, pushed: boolean }} Camera */
/** @typedef {{ device: string, version: string, uptime_s: number, memory: { traces: number, entities: number, utterances: number, bytes: number, free_bytes: number, cameras: string[] }, cpu_percent: number, load: number[], cores: number, rss_bytes: number, temperature_c: number | null, loop_lag_ms: number, channels: Record<string, { items: number, bound: number, dropped: number }>, missing: string[], networks: string, cameras: Camera[], you: { scopes: string[] } }} Status */

/**
 * @template T
 * @typedef {{ items: T[], next: string | null }} Page
 */

/** A refusal, in the words of its problem document. */
export class ApiError extends Error {
  /** @param {string} message @param {number} status */
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

/**
 * @param {string} method
 * @param {string} path below /api/v1
 * @param {unknown} [body] sent as JSON
 * @param {AbortSignal} [signal]
 * @returns {Promise<any>}
 */
export async function send(method, path, body, signal) {
  /** @type {Response} */
  let answer;
  try {
    answer = await fetch(`/api/v1${path}`, {
      method,
      signal,
      headers: body === undefined ? {} : { "Content-Type": "application/json" },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new ApiError("The device cannot be reached now.", 0);
  }
  if (answer.status === 204) return null;
  const json = await answer.json().catch(() => null);
  if (!answer.ok) throw new ApiError(json?.detail ?? `The device answered with ${answer.status}.`, answer.status);
  return json;
}

/**
 * @param {string} path below /api/v1
 * @param {Record<string, string | number | null | undefined>} [query] what is empty is left out
 * @param {AbortSignal} [signal]
 * @returns {Promise<any>}
 */
export function get(path, query = {}, signal) {
  const given = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) if (value) given.set(name, String(value));
  const text = given.toString();
  return send("GET", text ? `${path}?${text}` : path, undefined, signal);
}
