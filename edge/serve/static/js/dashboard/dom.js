// @ts-check
/** Small words for the document. Text always goes in as text: nothing that was seen or said is ever markup. */

/**
 * The element of an id, of the type that is expected.
 * @template {HTMLElement} T
 * @param {string} id
 * @param {new () => T} type
 * @returns {T}
 */
export function byId(id, type) {
  const found = document.getElementById(id);
  if (!(found instanceof type)) throw new Error(`#${id} is missing`);
  return found;
}

/**
 * An element with attributes and children.
 * @param {string} tag
 * @param {Record<string, string | number | boolean | ((event: Event) => void) | null | undefined>} [attributes]
 *   `onclick` and the like take a function; `true` sets an empty attribute; null, undefined and false set none.
 * @param {...(Node | string | null | undefined)} children
 * @returns {HTMLElement}
 */
export function el(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") made.addEventListener(name.slice(2), value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) made.setAttribute(name, String(value));
  }
  for (const child of children) if (child) made.append(child);
  return made;
}

/**
 * Call it once things have been quiet for a while.
 * @param {() => void} call
 * @param {number} ms
 * @returns {() => void}
 */
export function settled(call, ms) {
  let timer = 0;
  return () => {
    clearTimeout(timer);
    timer = window.setTimeout(call, ms);
  };
}

let hiding = 0;

/**
 * Say a sentence for some seconds.
 * @param {unknown} what an error or a text
 */
export function say(what) {
  const toast = byId("toast", HTMLParagraphElement);
  toast.textContent = what instanceof Error ? what.message : String(what);
  toast.hidden = false;
  clearTimeout(hiding);
  hiding = window.setTimeout(() => { toast.hidden = true; }, 6000);
}

/**
 * A picture of a key frame that comes when it is scrolled to.
 * @param {string} id
 * @param {string} words
 * @returns {HTMLElement}
 */
export function thumbnail(id, words) {
  return el("img", { src: `/api/v1/pictures/${id}`, alt: words, loading: "lazy", decoding: "async", width: 160, height: 110 });
}

/**
 * A face, or the first letter where there is none.
 * @param {string | null} path
 * @param {string} title
 * @returns {HTMLElement}
 */
export function face(path, title) {
  if (path) return el("img", { class: "face", src: path, alt: "", loading: "lazy", width: 48, height: 48 });
  const number = /\d+$/.exec(title);
  return el("span", { class: "face", "aria-hidden": "true" }, number ? number[0] : title.slice(0, 1).toUpperCase());
}
