// Where the person is: the page, the chosen attribute, the record, and the questions they have dealt with here.
// Functions from values to values, like those of state.js.

import { recordFor } from "./lists.js";
import { arePlaced, attributeOf, cellOf, isOffered, isSaid, isSamePlace, pageOf } from "./state.js";

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
 * of this page, else the first of all; none while a value is to be marked.
 * @param {State} state @param {Cursor} cursor @returns {Question | null}
 */
export const shownQuestion = (state, cursor) =>
  (placeToMark(state, cursor) ? null : nearestQuestion(state, cursor));

/**
 * Whether a question is about what the person looks at.
 * @param {State} state
 * @param {Cursor} cursor
 * @param {Question} question
 */
export function isAtCursor(state, cursor, question) {
  const place = placeOf(state, cursor);
  if (question.attribute === null) return question.page === cursor.page;
  return place !== null && isSamePlace(question, place);
}

/**
 * The cell whose value the person is to mark before anything else is asked: nothing is known of it, or what was
 * offered there is refused.
 * @param {State} state
 * @param {Cursor} cursor
 * @returns {Place | null}
 */
export function placeToMark(state, cursor) {
  const place = placeOf(state, cursor);
  if (!place || askedQuestion(state, cursor)) return null;
  const cell = cellOf(state, place);
  if (isSaid(cell)) return null;
  if (isDismissed(state, cursor, place)) return place;
  if (cell.state !== "unknown") return null;
  return place.record === null || isNew(state, place.attribute) || !hasFound(state, cursor) ? place : null;
}

/** What the person is to do at a cell to be marked. @param {State} state @param {Place} place */
export function adviceFor(state, place) {
  const { attribute, record } = place;
  if (cellOf(state, place).values.length) return `Click the right value of ${attribute}, or press a if there is none.`;
  return record === null
    ? `Click the value of ${attribute} on the page, or press a if it is not here.`
    : `Click the value of ${attribute} in a record that is not marked yet.`;
}

/**
 * The suggestions of the shown page that are confirmed together.
 * @param {State} state
 * @param {Cursor} cursor
 * @returns {Place[]}
 */
export function openOffers(state, cursor) {
  return state.attributes
    .map(({ name }) => ({ page: cursor.page, attribute: name, record: null }))
    .filter((place) => {
      const cell = cellOf(state, place);
      return isOffered(cell) && arePlaced(cell.values) && isOpen(state, cursor, place);
    });
}

/** @param {State} state @param {Cursor} cursor @returns {Question | undefined} */
const askedQuestion = (state, { asked, ...cursor }) =>
  asked === null ? undefined
    : openQuestions(state, { asked, ...cursor }).find((question) => isSamePlace(question, asked));

/** @param {State} state @param {Cursor} cursor @returns {Question | null} */
function nearestQuestion(state, cursor) {
  const questions = openQuestions(state, cursor);
  const place = placeOf(state, cursor);
  return askedQuestion(state, cursor)
    ?? questions.find((question) => place && isSamePlace(question, place))
    ?? (place && isOpen(state, cursor, place) ? questionAt(state, place) : null)
    ?? questions.find((question) => question.page === cursor.page) ?? questions[0] ?? null;
}

/**
 * The question of a cell that waits for yes or no, where the server asks none.
 * @param {State} state
 * @param {Place} place
 * @returns {Question}
 */
function questionAt(state, place) {
  const { state: kind, values } = cellOf(state, place);
  const where = `Page ${pageOf(state, place.page)?.number}, ${place.attribute}`;
  const shown = values.map(({ text }) => `“${text}”`).join(", ");
  const asked = shown ? `${shown}. Is that right?` : "no value is found. Is there none?";
  return { ...place, kind, text: `${where}: ${asked}` };
}

/** Whether no value of an attribute was said or found. @param {State} state @param {string} name */
function isNew(state, name) {
  const attribute = attributeOf(state, name);
  return !attribute || attribute.settled + attribute.found === 0;
}

/** Whether the shown list page has questions, or needs none. @param {State} state @param {Cursor} cursor */
const hasFound = (state, cursor) =>
  pageOf(state, cursor.page)?.is_settled || openQuestions(state, cursor).some(({ page }) => page === cursor.page);

/**
 * The question some steps after the shown one; the shown one itself if it is not where the cursor is.
 * @param {State} state
 * @param {Cursor} cursor
 * @param {number} step
 * @returns {Question | null}
 */
export function questionAfter(state, cursor, step) {
  const questions = openQuestions(state, cursor);
  const shown = nearestQuestion(state, cursor);
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
