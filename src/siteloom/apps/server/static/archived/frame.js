// The archived page in its sandboxed frame. Nothing in it runs; all listening is done from here.

import { Overlay } from "./overlay.js";
import { meaningOfSelection, numberedElements, numberedFrom } from "./picking.js";

/** @import {Target} from "./types.js" */

/** Pixels that a pointer moves with its button down before it counts as a drag. */
const DRAG_DISTANCE = 4;

/** Pixels around a value for what is drawn about it. */
const MARGIN = 20;

/** Events of the archived page that would leave it or change it. */
const UNWANTED = ["submit", "dragstart", "auxclick"];

/**
 * @typedef {object} Listeners
 * @property {(element: Element, text: Text | null) => void} onPoint
 * @property {(element: Element, text: Text | null, isMore: boolean) => void} onClick
 * @property {(target: Target, isDone: boolean, isMore: boolean) => void} onSelect
 * @property {() => void} onLeave
 * @property {(event: KeyboardEvent) => void} onKey
 */

export class Frame {
  #frame;
  #listeners;
  /** @type {Map<number, Element>} */
  #elements = new Map();
  /** @type {Overlay | null} */
  #overlay = null;
  /** @type {{element: HTMLElement, style: string | null}[]} what was hidden, and its own style */
  #hidden = [];
  #shown = 0;

  /** @param {HTMLIFrameElement} frame @param {Listeners} listeners */
  constructor(frame, listeners) {
    this.#frame = frame;
    this.#listeners = listeners;
  }

  get overlay() {
    return this.#overlay;
  }

  /** @returns {Element | null} */
  get body() {
    return this.#frame.contentDocument?.body ?? null;
  }

  /** @param {number} number */
  element(number) {
    return this.#elements.get(number);
  }

  /**
   * Show the version of a page that what is said of it is about.
   * @param {{id: number | string, version: string}} page whose id is a number, or text for a page on trial
   * @param {boolean} isRemote whether what the archive lacks may be loaded from the web
   * @returns {Promise<boolean>} false if another page was asked for meanwhile
   */
  async show({ id, version }, isRemote) {
    this.#shown += 1;
    const turn = this.#shown;
    this.#overlay = null;
    this.#elements = new Map();
    const query = new URLSearchParams({ version, ...(isRemote ? { remote: "1" } : {}) });
    const [text] = await Promise.all([
      fetchTree(`/pages/${id}/tree?${query}`), this.#load(`/pages/${id}/frame?${query}`),
    ]);
    if (turn !== this.#shown) return false;
    const archived = /** @type {Document} */ (this.#frame.contentDocument);
    archived.replaceChild(archived.importNode(parsed(text, archived), true), archived.documentElement);
    this.#elements = numberedElements(archived);
    this.#hidden = [];
    this.#overlay = new Overlay(archived);
    this.#listen(archived);
    return true;
  }

  /**
   * Bring an element into view, if it is not, with room for the digit in its corner.
   * @param {Element} element
   */
  reveal(element) {
    const { top, bottom } = element.getBoundingClientRect();
    const isSeen = top >= MARGIN && bottom <= this.#frame.clientHeight;
    if (!isSeen) element.scrollIntoView({ block: "center", inline: "nearest" });
    const { left } = element.getBoundingClientRect();
    if (left < MARGIN) this.#frame.contentWindow?.scrollBy(left - MARGIN, 0);
  }

  /**
   * Do not show an element until the page is shown again: banners cover what is below them.
   * @param {HTMLElement} element
   */
  hide(element) {
    this.#hidden.push({ element, style: element.getAttribute("style") });
    element.style.setProperty("display", "none", "important");
    this.#overlay?.redraw();
  }

  /** Show the element hidden last again. */
  unhide() {
    const last = this.#hidden.pop();
    if (last) last.element.style.cssText = last.style ?? "";
    this.#overlay?.redraw();
  }

  /** @param {string} address */
  #load(address) {
    return new Promise((resolve) => {
      this.#frame.addEventListener("load", resolve, { once: true });
      this.#frame.src = address;
    });
  }

  /** @param {Document} archived */
  #listen(archived) {
    /** @type {{text: Text, offset: number, x: number, y: number, range: Range | null} | null} */
    let drag = null;

    for (const name of UNWANTED) archived.addEventListener(name, (event) => event.preventDefault(), true);
    archived.addEventListener("keydown", this.#listeners.onKey);
    archived.addEventListener("mouseleave", this.#listeners.onLeave);

    archived.addEventListener("mousedown", (event) => {
      event.preventDefault(); // the focus stays where the keys are read, and links are not dragged
      const caret = event.button === 0 ? caretAt(archived, event.clientX, event.clientY) : null;
      drag = caret && { ...caret, x: event.clientX, y: event.clientY, range: null };
    }, true);

    archived.addEventListener("mousemove", (event) => {
      if (drag && event.buttons & 1) {
        if (Math.hypot(event.clientX - drag.x, event.clientY - drag.y) < DRAG_DISTANCE && !drag.range) return;
        drag.range = rangeBetween(drag, caretAt(archived, event.clientX, event.clientY)) ?? drag.range;
        const target = drag.range && meaningOfSelection(drag.range);
        if (target) this.#listeners.onSelect(target, false, event.shiftKey);
        return;
      }
      const pointed = pointedAt(archived, event);
      if (pointed) this.#listeners.onPoint(pointed.element, pointed.text);
    }, true);

    archived.addEventListener("click", (event) => {
      event.preventDefault();
      const selection = drag?.range && meaningOfSelection(drag.range);
      drag = null;
      if (selection) {
        this.#listeners.onSelect(selection, true, event.shiftKey);
        return;
      }
      const pointed = pointedAt(archived, event);
      if (pointed) this.#listeners.onClick(pointed.element, pointed.text, event.shiftKey);
    }, true);
  }
}

/** The tree of a page, as the server numbered it. @param {string} address @returns {Promise<string>} */
async function fetchTree(address) {
  const response = await fetch(address);
  if (response.redirected) throw new Error("The page cannot be shown: sign in again.");
  if (!response.ok) throw new Error(`The page cannot be shown: the server answered with ${response.status}.`);
  return response.text();
}

/**
 * The root of a tree. It is parsed by the frame, whose policy allows the page its own styles.
 * @param {string} text
 * @param {Document} archived
 */
function parsed(text, archived) {
  const view = /** @type {Window & typeof globalThis} */ (archived.defaultView);
  const tree = new view.DOMParser().parseFromString(text, "application/xhtml+xml");
  if (tree.querySelector("parsererror")) throw new Error("The page cannot be shown: its tree is not well-formed.");
  return tree.documentElement;
}

/**
 * The element under the pointer and its own text there; null on the ground of the page.
 * @param {Document} page
 * @param {MouseEvent} event
 */
function pointedAt(page, event) {
  const element = numberedFrom(/** @type {Node} */ (event.target));
  if (!element || element === page.body || element === page.documentElement) return null;
  const caret = caretAt(page, event.clientX, event.clientY);
  return { element, text: caret && caret.text.parentElement === element ? caret.text : null };
}

/**
 * The place in the text at a point, if there is text.
 * @param {Document} page
 * @param {number} x
 * @param {number} y
 */
function caretAt(page, x, y) {
  const position = page.caretPositionFromPoint?.(x, y);
  const range = position ? null : page.caretRangeFromPoint?.(x, y);
  const node = position?.offsetNode ?? range?.startContainer;
  if (node?.nodeType !== Node.TEXT_NODE) return null;
  return { text: /** @type {Text} */ (node), offset: position?.offset ?? range?.startOffset ?? 0 };
}

/**
 * @param {{text: Text, offset: number}} from
 * @param {{text: Text, offset: number} | null} to
 * @returns {Range | null}
 */
function rangeBetween(from, to) {
  if (!to) return null;
  const range = from.text.ownerDocument.createRange();
  range.setStart(from.text, from.offset);
  range.setEnd(to.text, to.offset);
  if (!range.collapsed || (from.text === to.text && from.offset === to.offset)) return range;
  range.setStart(to.text, to.offset); // the pointer went backwards
  range.setEnd(from.text, from.offset);
  return range;
}
