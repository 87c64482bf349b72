// Where the person is: the page, the chosen attribute, the record, and the questions they have dealt with here.
// Functions from values to values, like those of state.js.

import { recordFor } from "./lists.js";
import { attributeOf, cellOf, isOffered, isSaid, isSamePlace, pageOf } from "./state.js";

/** @import {Page, Place, Question, State} from "./types.js" */

/**
 * @typedef {object} Cursor
 * @property {number} page
 * @property {string | null} attribute
 * @property {number} record of a list page, the one that values are added to
 * @property {Place | null} exact a cell that the next value goes to, whatever the record
 * @property {Question | null} asked the question that the person went to
 * @property {Map<number, boolean>} lists pages that the person said are lists, or are not
 * @property {Set<string>} dismissed suggestions refused and differences kept, by `fingerprint`
 */

/** @param {number} page @returns {Cursor} */
export const cursorOn = (page) => (
  { page, attribute: null, record: 0, exact: null, asked: null, lists: new Map(), dismissed: new Set() });

/** Whether the shown page lists several records. @param {State} state @param {Cursor} cursor */
export function isList(state, cursor) {
  const page = pageOf(state, cursor.page);
  return (page?.records.length ?? 0) > 0 || (cursor.lists.get(cursor.page) ?? state.is_list);
}

/**
 * The cell that the next value goes to.
 * @param {State} state
 * @param {Cursor} cursor
 * @returns {Place | null}
 */
export function placeOf(state, { exact, ...cursor }) {
  const page = pageOf(state, cursor.page);
  if (!page || cursor.attribute === null) return null;
  if (exact && exact.page === cursor.page && exact.attribute === cursor.attribute) return exact;
  const record = isList(state, { exact, ...cursor }) ? recordFor(page, cursor.record, cursor.attribute) : null;
  return { page: cursor.page, attribute: cursor.attribute, record };
}

/**
 * What a dismissed suggestion is known by; one with other values is another suggestion.
 * @param {State} state
 * @param {Place | Question} place
 */
export function fingerprint(state, place) {
  if (place.attribute === null) return JSON.stringify([place.page, pageOf(state, place.page)?.found_records]);
  const cell = cellOf(state, /** @type {Place} */ (place));
  const shown = (cell.differs ? cell.finds : cell.values) ?? [];
  return JSON.stringify([place.page, place.record, place.attribute, cell.state, shown.map((value) => value.text)]);
}

/** @param {State} state @param {Cursor} cursor @param {Place | Question} place */
export const isDismissed = (state, cursor, place) => cursor.dismissed.has(fingerprint(state, place));

/** Whether a cell waits for yes or no. @param {State} state @param {Cursor} cursor @param {Place} place */
export function isOpen(state, cursor, place) {
  const cell = cellOf(state, place);
  const asks = isOffered(cell) || cell.state === "empty" || (isSaid(cell) && cell.differs);
  return asks && !isDismissed(state, cursor, place);
}

/**
 * The questions not dealt with, the most worthwhile first.
 * @param {State} state
 * @param {Cursor} cursor
 * @returns {Question[]}
 */
export const openQuestions = (state, cursor) =>
  state.questions.filter((question) =>
    (question.attribute === null || attributeOf(state, question.attribute)) && !isDismissed(state, cursor, question));

/**
 * The question to show: the one the person went to, or the one at the cursor, else the first
 * of this page, else the first of all.
 * @param {State} state @param {Cursor} cursor @returns {Question | null}
 */
export function shownQuestion(state, cursor) {
  const questions = openQuestions(state, cursor);
  const place = placeOf(state, cursor);
  const { asked } = cursor;
  return questions.find((question) => asked && isSamePlace(question, asked))
    ?? questions.find((question) => place && isSamePlace(question, place))
    ?? questions.find((question) => question.page === cursor.page) ?? questions[0] ?? null;
}

/**
 * The question some steps after the shown one; the shown one itself if it is not where the cursor is.
 * @param {State} state
 * @param {Cursor} cursor
 * @param {number} step
 * @returns {Question | null}
 */
export function questionAfter(state, cursor, step) {
  const questions = openQuestions(state, cursor);
  const shown = shownQuestion(state, cursor);
  if (!shown) return null;
  const place = placeOf(state, cursor);
  if (![place, cursor.asked].some((at) => at && isSamePlace(shown, at))) return shown;
  return questions[(questions.indexOf(shown) + step + questions.length) % questions.length];
}

/**
 * The cell of the shown page to look at next: one that asks, else one that nobody spoke of.
 * @param {State} state
 * @param {Cursor} cursor
 * @returns {Place | Question | null}
 */
export function nextOpen(state, cursor) {
  const question = openQuestions(state, cursor).find((each) => each.page === cursor.page);
  if (question || isList(state, cursor)) return question ?? null;
  const places = state.attributes.map(({ name }) => ({ page: cursor.page, attribute: name, record: null }));
  return places.find((place) => isOpen(state, cursor, place))
    ?? places.find((place) => !isSaid(cellOf(state, place))) ?? null;
}

/**
 * The page some steps after the shown one.
 * @param {State} state
 * @param {Cursor} cursor
 * @param {number} step
 * @returns {Page | undefined}
 */
export function pageAfter(state, cursor, step) {
  return state.pages[state.pages.findIndex((page) => page.id === cursor.page) + step];
}
