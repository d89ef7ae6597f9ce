// @ts-check
/** Times as the device gives them: ISO 8601 with the offset of its own zone, whose calendar counts. */

const DAYS = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const MONTHS = ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"];

/** @param {string} iso @returns {string} 14:03:22 */
export const clock = (iso) => iso.slice(11, 19);

/** @param {string} iso @returns {string} 2025-01-03 */
export const date = (iso) => iso.slice(0, 10);

/** @param {string} start @param {string} end @returns {string} 14:03:22 – 14:03:50 */
export const span = (start, end) => (clock(start) === clock(end) ? clock(start) : `${clock(start)} – ${clock(end)}`);

/** @param {string} day 2025-01-03 @returns {string} Friday, 3 January 2025 */
export function longDay(day) {
  const [year, month, number] = day.split("-").map(Number);
  return `${DAYS[new Date(Date.UTC(year, month - 1, number)).getUTCDay()]}, ${number} ${MONTHS[month - 1]} ${year}`;
}

/** @param {string} iso @returns {string} “just now”, “5 min ago”, or the day (with its year if it is another) and the time */
export function ago(iso) {
  const seconds = (Date.now() - Date.parse(iso)) / 1000;
  if (seconds >= 0 && seconds < 60) return "just now";
  if (seconds >= 0 && seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  const [year, month, number] = date(iso).split("-").map(Number);
  const now = new Date().toLocaleDateString("sv-SE");
  if (date(iso) === now) return clock(iso).slice(0, 5);
  const of = String(year) === now.slice(0, 4) ? "" : ` ${year}`;
  return `${number} ${MONTHS[month - 1].slice(0, 3)}${of} ${clock(iso).slice(0, 5)}`;
}

/** @param {number} seconds @returns {string} 3 d 4 h */
export function lasting(seconds) {
  const parts = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
  /** @type {string[]} */
  const words = [];
  let rest = Math.floor(seconds);
  for (const [size, unit] of parts) {
    const count = Math.floor(rest / Number(size));
    rest -= count * Number(size);
    if (count && words.length < 2) words.push(`${count} ${unit}`);
  }
  return words.join(" ") || "0 s";
}

/** @param {number} bytes @returns {string} */
export function size(bytes) {
  if (bytes >= 1e9) return `${(bytes / 1e9).toFixed(1)} GB`;
  if (bytes >= 1e6) return `${(bytes / 1e6).toFixed(1)} MB`;
  return `${Math.ceil(bytes / 1e3)} kB`;
}
