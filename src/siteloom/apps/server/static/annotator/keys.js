// The keyboard: which key asks for what, and the help that says so.

import { keyOf } from "../siteloom.js";
import { make } from "./dom.js";

/**
 * What keys ask for. `keys` are names as events tell them, `shown` how the help writes them.
 * @typedef {{action: string, keys: string[], shown: string[], help: string}} Binding
 */

const DIGITS = ["1", "2", "3", "4", "5", "6", "7", "8", "9", "0"];
const ARROWS = ["ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight"];

/** @type {{title: string, bindings: Binding[]}[]} */
const GROUPS = [
  {
    title: "Mark values",
    bindings: [
      { action: "choose", keys: DIGITS, shown: ["1", "…", "9", "0"], help: "choose the attribute" },
      { action: "previousAttribute", keys: [","], shown: [","], help: "attribute before" },
      { action: "nextAttribute", keys: ["."], shown: ["."], help: "attribute after" },
      {
        action: "walk", keys: ARROWS, shown: ["↑", "↓", "←", "→"],
        help: "outline the parent, first child, node before or after",
      },
      {
        action: "meaning", keys: ["t"], shown: ["t"],
        help: "what of the node is meant: a text, all of it, href, src …",
      },
      { action: "cut", keys: ["[", "]"], shown: ["[", "]"], help: "cut a word at the front or at the end" },
      { action: "uncut", keys: ["{", "}"], shown: ["{", "}"], help: "take a cut word back" },
      {
        action: "accept", keys: ["Enter"], shown: ["Enter"],
        help: "assign the node that arrow keys led to, or confirm what is asked",
      },
      { action: "more", keys: ["m"], shown: ["m", "Shift click"], help: "assign the node as one more value" },
      { action: "absent", keys: ["a"], shown: ["a"], help: "say that there is no value here" },
      { action: "undo", keys: ["z"], shown: ["z"], help: "undo the last change" },
    ],
  },
  {
    title: "Attributes",
    bindings: [
      { action: "addAttribute", keys: ["+"], shown: ["+"], help: "add an attribute" },
      { action: "editAttribute", keys: ["e"], shown: ["e", "double click"], help: "change the attribute" },
      { action: "help", keys: ["?"], shown: ["?"], help: "these keys" },
      { action: "close", keys: ["Escape"], shown: ["Esc"], help: "close, leave the question or the outline" },
    ],
  },
  {
    title: "Answer",
    bindings: [
      { action: "refuse", keys: ["x"], shown: ["x"], help: "refuse the suggestion, then say what is right" },
      {
        action: "takeFound", keys: ["u"], shown: ["u"],
        help: "use what the wrapper finds instead of what was said",
      },
      {
        action: "acceptAll", keys: ["Shift+Enter"], shown: ["Shift", "Enter"],
        help: "confirm all suggestions of this page",
      },
      { action: "nextQuestion", keys: ["j"], shown: ["j"], help: "next question" },
      { action: "previousQuestion", keys: ["k"], shown: ["k"], help: "question before" },
    ],
  },
  {
    title: "Pages",
    bindings: [
      { action: "nextPage", keys: ["n"], shown: ["n"], help: "next page" },
      { action: "previousPage", keys: ["p"], shown: ["p"], help: "page before" },
      { action: "toggleList", keys: ["l"], shown: ["l"], help: "this page lists several records (or not)" },
      { action: "newRecord", keys: ["r"], shown: ["r"], help: "begin a new record of the list" },
      {
        action: "hide", keys: ["h"], shown: ["h"],
        help: "hide the outlined node: something below it is wanted",
      },
      { action: "unhide", keys: ["H"], shown: ["Shift", "h"], help: "show it again" },
      {
        action: "toggleRemote", keys: ["w"], shown: ["w"],
        help: "load pictures and styles that the archive lacks from the web (or not)",
      },
    ],
  },
];

/** Keys that buttons and links understand themselves. */
const NATIVE = new Set(["Enter", " "]);

const ACTIONS = new Map(
  GROUPS.flatMap(({ bindings }) => bindings.flatMap(({ keys, action }) => keys.map((key) => [key, action]))),
);

/**
 * What a key asks for; null if it is not ours, as while somebody types.
 * @param {KeyboardEvent} event
 * @returns {string | null}
 */
export function actionOf(event) {
  if (keyOf(event) === null) return null;
  const target = /** @type {Element} */ (event.target);
  if (target.closest?.("button, a, summary") && NATIVE.has(event.key)) return null;
  if (target.closest?.("[role=radio]") && ARROWS.includes(event.key)) return null;
  return ACTIONS.get(event.shiftKey && event.key === "Enter" ? "Shift+Enter" : event.key) ?? null;
}

/** The place of the attribute that a digit chooses. @param {string} key */
export const placeOfDigit = (key) => DIGITS.indexOf(key);

/** The digit that chooses the attribute at a place; its number if there is none. @param {number} place */
export const digitOf = (place) => DIGITS[place] ?? String(place + 1);

/** What stands behind the names of attributes. */
const SIGNS = "Behind the name of an attribute, * says that every page has it, and + that it may have several values.";

/** All keys, to be read. */
export function helpOfKeys() {
  const groups = make("div", { class: "groups" }, ...GROUPS.map(({ title, bindings }) =>
    make("section", {},
      make("h3", { textContent: title }),
      make("dl", { class: "keys" }, ...bindings.flatMap(({ shown, help }) => [
        make("dt", {}, ...shown.map((key) => make("kbd", { textContent: key }))),
        make("dd", { textContent: help }),
      ])))));
  return make("div", {}, groups, make("p", { class: "soft", textContent: SIGNS }));
}
