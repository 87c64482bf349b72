// What a person means by pointing at a node of the archived page, as the server counts nodes and texts.

import { Reading } from "./reading.js";

/** @import {Pick, Target} from "./types.js" */

/** HTML attributes that hold values. */
const VALUE_ATTRIBUTES = ["href", "src", "alt", "title", "content", "datetime", "value"];

/** Those of them that the shown page has only under another name. */
const TOLD_BESIDE = new Set(["content", "href", "src"]);

const NUMBER = "data-siteloom";

/** The elements of a served tree by their numbers. @param {Document} page @returns {Map<number, Element>} */
export function numberedElements(page) {
  const numbered = [...page.querySelectorAll(`[${NUMBER}]`)];
  return new Map(numbered.map((element) => [numberOf(element), element]));
}

/** @param {Element} element */
export const numberOf = (element) => Number(element.getAttribute(NUMBER));

/**
 * The nearest element with a number, from a node upwards.
 * @param {Node | null} node
 * @returns {Element | null}
 */
export function numberedFrom(node) {
  const element = node?.nodeType === Node.ELEMENT_NODE ? /** @type {Element} */ (node) : node?.parentElement;
  return element?.closest(`[${NUMBER}]`) ?? null;
}

/** The text children of an element, as XPath counts them. @param {Element} element @returns {Text[]} */
const textsOf = (element) =>
  /** @type {Text[]} */ ([...element.childNodes].filter((node) => node.nodeType === Node.TEXT_NODE));

/** The number of a text among those of its element, from 1. @param {Element} element @param {Text} text */
export const textNumber = (element, text) => textsOf(element).indexOf(text) + 1;

/** @param {Node} node */
const isBlank = (node) => !node.textContent?.trim();

/** @param {Element} element */
const hasTextInside = (element) =>
  [...element.children].some((child) => !isBlank(child) && child.getClientRects().length > 0);

/** @param {Element} element @param {Partial<Pick>} [part] @returns {Pick} */
const pickOf = (element, part = {}) => (
  { element: numberOf(element), text: null, attribute: null, start: null, end: null, ...part });

/**
 * All that can be meant by an element: each of its own texts, all text inside, its HTML attributes.
 * @param {Element} element
 * @returns {Pick[]}
 */
function meaningsOf(element) {
  const texts = textsOf(element).flatMap((text, index) =>
    (isBlank(text) ? [] : [pickOf(element, { text: index + 1 })]));
  const whole = isBlank(element) || (texts.length === 1 && !hasTextInside(element)) ? [] : [pickOf(element)];
  const attributes = VALUE_ATTRIBUTES.filter((name) => valueOfAttribute(element, name));
  const all = [...texts, ...whole, ...attributes.map((name) => pickOf(element, { attribute: name }))];
  return all.length ? all : [pickOf(element)];
}

/**
 * What a click on an element most likely means for an attribute of a type.
 * @param {Element} element
 * @param {string | null} type
 * @param {Text | null} pointed the element's own text under the pointer
 * @returns {Pick}
 */
export function likelyMeaning(element, type, pointed) {
  const wanted = likelyAttributes(element, type).find((name) => valueOfAttribute(element, name));
  if (wanted) return pickOf(element, { attribute: wanted });
  const texts = textsOf(element);
  const filled = texts.filter((text) => !isBlank(text));
  const isAlone = filled.length === 1 && (filled[0] === pointed || !hasTextInside(element));
  return isAlone ? pickOf(element, { text: texts.indexOf(filled[0]) + 1 }) : pickOf(element);
}

/** @param {Element} element @param {string | null} type @returns {string[]} */
function likelyAttributes(element, type) {
  const isAddress = type === "url" || type === "image";
  if (element.localName === "img") return isAddress || type === null ? ["src", "alt"] : ["alt", "src"];
  if (element.localName === "meta") return ["content"];
  return type === "url" ? ["href"] : [];
}

/** The next or first other meaning of a target. @param {Target} target @returns {Pick} */
export function nextMeaning({ element, pick }) {
  const all = meaningsOf(element);
  const current = all.findIndex((each) => each.text === pick.text && each.attribute === pick.attribute);
  return all[(current + 1) % all.length];
}

/**
 * What a selection from one point in the text to another means: part of a text, or of all text of the element
 * around it.
 * @param {Range} range
 * @returns {Target | null}
 */
export function meaningOfSelection(range) {
  const { startContainer: start, endContainer: end } = range;
  const element = numberedFrom(range.commonAncestorContainer);
  if (!element || start.nodeType !== Node.TEXT_NODE || !range.toString().trim()) return null;
  if (start !== end || start.parentElement !== element) {
    const part = new Reading(element).partIn(range);
    return part && { element, pick: partOf(element, pickOf(element), part.start, part.end) };
  }
  const text = /** @type {Text} */ (start);
  const whole = pickOf(element, { text: textNumber(element, text) });
  return { element, pick: partOf(element, whole, ...trimmed(text.data, range.startOffset, range.endOffset)) };
}

/** @param {Element} element @param {Pick} pick @param {number} start @param {number} end @returns {Pick} */
function partOf(element, pick, start, end) {
  const whole = wholeOf(element, pick);
  const [first, last] = trimmed(whole, 0, whole.length);
  const isAll = start <= first && end >= last;
  return { ...pick, start: isAll ? null : start, end: isAll ? null : end };
}

/**
 * The whole text that the offsets of a pick count in; empty if it is not a text that is meant.
 * @param {Element} element
 * @param {Pick} pick
 */
function wholeOf(element, pick) {
  if (pick.attribute !== null) return "";
  return pick.text === null ? new Reading(element).line : textsOf(element)[pick.text - 1]?.data ?? "";
}

/**
 * Offsets without the white space at both ends.
 * @param {string} text
 * @param {number} start
 * @param {number} end
 * @returns {[number, number]}
 */
function trimmed(text, start, end) {
  const part = text.slice(start, end);
  const lead = part.length - part.trimStart().length;
  return [start + lead, start + lead + part.trim().length];
}

/**
 * A pick with one word more or less cut from one end of its text.
 * @param {Target} target
 * @param {"start" | "end"} end
 * @param {1 | -1} direction 1 cuts a word, -1 takes one back
 * @returns {Pick}
 */
export function cutAtWord({ element, pick }, end, direction) {
  const text = wholeOf(element, pick);
  if (!text) return pick;
  const [first, last] = trimmed(text, 0, text.length);
  const words = [...text.matchAll(/[\p{L}\p{N}]+|[^\s\p{L}\p{N}]+/gu)];
  const [start, stop] = [pick.start ?? first, pick.end ?? last];
  const bounds = end === "start" ? words.map((word) => word.index) : words.map((word) => word.index + word[0].length);
  const isForward = (end === "start") === (direction === 1);
  const from = end === "start" ? start : stop;
  const bound = isForward ? bounds.find((each) => each > from) : bounds.findLast((each) => each < from);
  if (bound === undefined) return pick;
  const [newStart, newStop] = end === "start" ? [bound, stop] : [start, bound];
  return newStart < newStop ? partOf(element, pick, newStart, newStop) : pick;
}

/**
 * What an attribute says in the archive. Addresses of the shown page lead nowhere; what they were stands beside.
 * @param {Element} element
 * @param {string} name
 */
function valueOfAttribute(element, name) {
  const told = element.getAttribute(`${NUMBER}-${name}`);
  return (TOLD_BESIDE.has(name) ? told : element.getAttribute(name))?.trim() ?? "";
}

/**
 * The value that a pick stands for.
 * @param {Element | undefined} element
 * @param {Pick} pick
 * @returns {string}
 */
export function textOf(element, pick) {
  if (!element) return "";
  if (pick.attribute !== null) return valueOfAttribute(element, pick.attribute);
  const whole = wholeOf(element, pick);
  return whole.slice(pick.start ?? 0, pick.end ?? whole.length).trim();
}

/**
 * What is cut off before and after a part of a text; null if nothing is.
 * @param {Element | undefined} element
 * @param {Pick} pick
 */
export function cutsOf(element, pick) {
  if (!element || pick.attribute !== null || pick.start === null || pick.end === null) return null;
  const whole = wholeOf(element, pick);
  return { before: whole.slice(0, pick.start).trimStart(), after: whole.slice(pick.end).trimEnd() };
}

/**
 * Where a pick is seen, in the coordinates of the frame.
 * @param {Element | undefined} element
 * @param {Pick} pick
 * @returns {DOMRect[]}
 */
export function rectanglesOf(element, pick) {
  if (!element) return [];
  if (pick.text === null && pick.attribute === null && pick.start !== null && pick.end !== null) {
    const part = new Reading(element).rangeOf(pick.start, pick.end);
    return part ? visible([...part.getClientRects()]) : [];
  }
  const text = pick.text === null ? undefined : textsOf(element)[pick.text - 1];
  if (!text) return rectanglesOfElement(element);
  const range = element.ownerDocument.createRange();
  const [first, last] = trimmed(text.data, 0, text.length);
  range.setStart(text, Math.min(pick.start ?? first, text.length));
  range.setEnd(text, Math.min(pick.end ?? last, text.length));
  return visible([...range.getClientRects()]);
}

/** @param {Element} element */
export function rectanglesOfElement(element) {
  const own = visible([...element.getClientRects()]);
  if (own.length) return own;
  const range = element.ownerDocument.createRange();
  range.selectNodeContents(element);
  return visible([...range.getClientRects()]);
}

/** The one rectangle around several. @param {DOMRect[]} rectangles @returns {DOMRect[]} */
export function around(rectangles) {
  if (!rectangles.length) return [];
  const left = Math.min(...rectangles.map((each) => each.left));
  const top = Math.min(...rectangles.map((each) => each.top));
  const right = Math.max(...rectangles.map((each) => each.right));
  const bottom = Math.max(...rectangles.map((each) => each.bottom));
  return [new DOMRect(left, top, right - left, bottom - top)];
}

/** @param {DOMRect[]} rectangles */
const visible = (rectangles) => rectangles.filter(({ width, height }) => width > 0 && height > 0);

/**
 * What a pick is called on the screen: its tag, its first class, and which part of it.
 * @param {Element} element
 * @param {Pick} pick
 */
export function describe(element, pick) {
  const [first] = element.classList;
  const name = first ? `${element.localName}.${first}` : element.localName;
  if (pick.attribute !== null) return `${name} ${pick.attribute}`;
  const texts = textsOf(element).filter((text) => !isBlank(text)).length;
  if (pick.text !== null) return texts > 1 || hasTextInside(element) ? `${name}, text ${pick.text}` : name;
  return texts > 0 && pick.start === null ? `${name}, all of it` : name;
}

/**
 * Whether two elements stand at the same tags, apart from their positions.
 * @param {Element} a
 * @param {Element} b
 */
export const areTwins = (a, b) => a !== b && tagPath(a) === tagPath(b);

/** @param {Element | null} element */
function tagPath(element) {
  const tags = [];
  for (let each = element; each; each = each.parentElement) tags.push(each.localName);
  return tags.join(" ");
}

/**
 * The element that an arrow key leads to; null at the edge.
 * @param {Element} element
 * @param {string} key
 * @returns {Element | null}
 */
export function neighbour(element, key) {
  switch (key) {
    case "ArrowUp": return element.parentElement;
    case "ArrowDown": return [...element.children].find(isSeen) ?? null;
    case "ArrowLeft": return firstSeen(element, "previousElementSibling");
    default: return firstSeen(element, "nextElementSibling");
  }
}

/** @param {Element} element @param {"previousElementSibling" | "nextElementSibling"} direction */
function firstSeen(element, direction) {
  for (let each = element[direction]; each; each = each[direction]) if (isSeen(each)) return each;
  return null;
}

/** @param {Element} element */
const isSeen = (element) => element.hasAttribute(NUMBER) && rectanglesOfElement(element).length > 0;
