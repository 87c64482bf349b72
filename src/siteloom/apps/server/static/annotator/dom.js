// Elements made in few words.

/** @typedef {Node | string | null | undefined | false} Child what is empty is left out */

/** @param {Child} child @returns {child is Node | string} */
const isThere = (child) => Boolean(child);

/**
 * An element with properties, attributes and children. Names starting with "on" are listeners; `class`, `role`,
 * `aria-*` and `data-*` are attributes; all others are properties.
 * @param {string} tag
 * @param {Record<string, any>} [settings]
 * @param {...Child} children
 * @returns {HTMLElement}
 */
export function make(tag, settings = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(settings)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name in element && !name.includes("-")) element[name] = value;
    else element.setAttribute(name, value === true ? "true" : String(value));
  }
  element.append(...children.filter(isThere));
  return element;
}

/**
 * Put new children into an element; the focus stays on the child with the same id.
 * @param {Element} parent
 * @param {...Child} children
 */
export function fill(parent, ...children) {
  const focused = parent.contains(document.activeElement) ? document.activeElement?.id : "";
  parent.replaceChildren(...children.filter(isThere));
  if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
}

/**
 * The first characters of a text, with its white space made single.
 * @param {string} text
 * @param {number} longest
 */
export function shortened(text, longest) {
  const plain = text.replace(/\s+/g, " ").trim();
  return plain.length > longest ? `${plain.slice(0, longest - 1)}…` : plain;
}

/**
 * A function that finds the parts of an element by their names.
 * @param {ParentNode} root
 * @returns {(name: string) => HTMLElement}
 */
export const partsOf = (root) => (name) =>
  /** @type {HTMLElement} */ (root.querySelector(`[data-part=${name}]`));

/** A part of the whole in percent; what is not all or nothing is never told as such. @param {number} share */
export const percent = (share) =>
  share > 0.99 && share < 1 ? "> 99 %" : share > 0 && share < 0.01 ? "< 1 %" : `${Math.round(share * 100)} %`;
