// Which boxes are drawn over the shown page: what was said, suggested or known, and the records of a list.

import { around, rectanglesOf, rectanglesOfElement } from "../archived/picking.js";
import { isDismissed, isList, placeOf } from "./cursor.js";
import { digitOf } from "./keys.js";
import { unsaidRecords } from "./lists.js";
import { cellOf, pageOf } from "./state.js";

/** @import {Mark} from "../archived/overlay.js" */
/** @import {Palette} from "../archived/palette.js" */
/** @import {Cursor} from "./cursor.js" */
/** @import {Cell, Page, Place, State, Target, Value} from "./types.js" */
/** @typedef {(number: number) => Element | undefined} Elements finds an element of the page by its number */

/** @type {Record<string, Mark["line"]>} */
const LINES = { said: "solid", suggested: "dashed", known: "dotted" };

/**
 * @param {State} state
 * @param {Cursor} cursor
 * @param {Elements} elements
 * @param {Palette} palette
 * @returns {Mark[]}
 */
export function marksOf(state, cursor, elements, palette) {
  const page = pageOf(state, cursor.page);
  if (!page) return [];
  const draw = { elements, palette };
  if (isList(state, cursor)) return marksOfList(state, page, draw);
  return state.attributes.flatMap(({ name }, place) => {
    const at = { page: page.id, attribute: name, record: null };
    const cell = cellOf(state, at);
    return isDismissed(state, cursor, at) && cell.state !== "said" ? [] : marksOfCell(cell, place, draw);
  });
}

/**
 * The outline of what is pointed at, else of what is asked.
 * @param {State} state
 * @param {Cursor} cursor
 * @param {Target | null} target
 * @param {Elements} elements
 * @param {Palette} palette
 * @returns {Mark[]}
 */
export function outlineOf(state, cursor, target, elements, palette) {
  const place = placeOf(state, cursor);
  const index = state.attributes.findIndex(({ name }) => name === cursor.attribute);
  const colour = index < 0 ? palette.neutral : palette.attribute(index);
  const outline = { colour, line: /** @type {const} */ ("outline"), label: "" };
  if (target) return [{ ...outline, rectangles: () => rectanglesOf(target.element, target.pick) }];
  if (!place || isDismissed(state, cursor, place)) return [];
  return cellOf(state, place).values.map(({ pick }) => (
    { ...outline, rectangles: () => (pick ? rectanglesOf(elements(pick.element), pick) : []) }));
}

/** @typedef {{elements: Elements, palette: Palette}} Drawing */

/** @param {Cell} cell @param {number} place @param {Drawing} draw @returns {Mark[]} */
function marksOfCell(cell, place, draw) {
  const line = LINES[cell.state];
  if (!line) return [];
  const said = cell.values.map((value) => markOf(value, place, line, cell.differs ? " ⚠" : "", draw));
  const found = cell.differs ? (cell.finds ?? []).map((value) => markOf(value, place, "dashed", "?", draw)) : [];
  return [...said, ...found];
}

/** @param {State} state @param {Page} page @param {Drawing} draw @returns {Mark[]} */
function marksOfList(state, page, draw) {
  const places = new Map(state.attributes.map(({ name }, place) => [name, place]));
  const frames = page.record_elements.map((numbers, index) => ({
    colour: draw.palette.neutral,
    line: /** @type {const} */ ("record"),
    label: `record ${index + 1}`,
    rectangles: () => around(numbers.flatMap((number) => rectanglesOfNumber(number, draw))),
  }));
  const said = page.records.flatMap((cells) => Object.entries(cells).flatMap(([name, cell]) =>
    marksOfCell(cell, places.get(name) ?? 0, draw)));
  const found = unsaidRecords(page).flatMap((record) => Object.entries(record).flatMap(([name, values]) =>
    values.map((value) => markOf(value, places.get(name) ?? 0, "dashed", "", draw))));
  return [...frames, ...said, ...found];
}

/**
 * @param {Value} value
 * @param {number} place
 * @param {Mark["line"]} line
 * @param {string} sign
 * @param {Drawing} draw
 * @returns {Mark}
 */
function markOf({ pick }, place, line, sign, { elements, palette }) {
  return {
    colour: palette.attribute(place),
    line,
    label: `${digitOf(place)}${sign}`,
    rectangles: () => (pick ? rectanglesOf(elements(pick.element), pick) : []),
  };
}

/** @param {number} number @param {Drawing} draw */
function rectanglesOfNumber(number, { elements }) {
  const element = elements(number);
  return element ? rectanglesOfElement(element) : [];
}
