// Answering: yes or no to what is asked, suggested or found.

import { fingerprint, isOpen, shownQuestion } from "./cursor.js";
import { unsaidRecords, withAllRecords } from "./lists.js";
import { arePlaced, cellOf, hasNoAnswer, isOffered, isSaid, isSamePlace } from "./state.js";

/** @import {Desk} from "./desk.js" */
/** @import {Going} from "./going.js" */
/** @import {Model} from "./model.js" */
/** @import {Page, Place, Question} from "./types.js" */

export class Answering {
  #desk;
  #model;
  #going;

  /** @param {Desk} desk @param {Model} model @param {Going} going */
  constructor(desk, model, going) {
    this.#desk = desk;
    this.#model = model;
    this.#going = going;
  }

  /** Say yes to what is asked here, or to the next record that was found. @returns {boolean} whether there was one */
  acceptHere() {
    const { state, cursor, place, isList } = this.#desk;
    const isAsked = cursor.asked !== null && shownQuestion(state, cursor)?.page === cursor.page;
    if (!isAsked && !(place && isOpen(state, cursor, place))) return isList && this.#acceptRecord();
    this.acceptAsked();
    return true;
  }

  /** Say yes to the shown question; if it is about another cell, look at that first. */
  acceptAsked() {
    const { state, cursor, place } = this.#desk;
    const question = shownQuestion(state, cursor);
    if (question?.attribute === null && question.page === cursor.page) return this.#acceptRecords(question);
    const asked = place && isOpen(state, cursor, place) ? place : question;
    if (!asked) return;
    if (!place || !isSamePlace(asked, place)) return this.#going.goTo(asked);
    const cell = cellOf(state, place);
    if (isSaid(cell)) this.#dismiss(place);
    else if (cell.state === "empty") this.#desk.sayValues(`${place.attribute} is absent here`, place, []);
    else if (!this.#desk.sayValues(`${place.attribute} confirmed`, place, cell.values)) return;
    this.#going.lookAtNext();
  }

  /** Say yes to all that is suggested on the page. */
  acceptAll() {
    const { page, isList } = this.#desk;
    if (!page) return;
    if (isList) this.#desk.change(`all ${page.found_records.length} records confirmed`, withAllRecords(page));
    else this.#acceptSuggestions(page);
  }

  refuse() {
    const { state, cursor, place: here } = this.#desk;
    const place = here && isOpen(state, cursor, here) ? here : shownQuestion(state, cursor);
    if (!place) return this.#desk.say("There is nothing to refuse here.");
    this.#going.goTo(place);
    if (place.page !== cursor.page) return;
    this.#dismiss(place);
    const advice = place.attribute === null
      ? "Mark values in one more record, or in one that is not right."
      : `Mark the right value of ${place.attribute}, or press a if it is absent here.`;
    this.#desk.say(advice);
  }

  /** Say that what the wrapper finds is right, instead of what was said. */
  takeFound() {
    const { place, state } = this.#desk;
    const found = place && cellOf(state, place).finds;
    if (!place || !found) return this.#desk.say("The wrapper finds nothing else here.");
    const isSaidNow = this.#desk.sayValues(`${place.attribute} is what the wrapper finds`, place, found);
    if (isSaidNow) this.#going.lookAtNext();
  }

  /** Say that the chosen attribute is absent here. */
  sayAbsent() {
    const { place } = this.#desk;
    if (!place) return this.#desk.say("Choose an attribute first.");
    this.#desk.sayValues(`${place.attribute} is absent here`, place, []);
    this.#desk.move({ record: place.record ?? 0 });
    this.#going.lookAtNext();
  }

  /** Say yes to a question about all records of the page. @param {Question} question */
  #acceptRecords(question) {
    if (!hasNoAnswer(question)) return this.acceptAll();
    this.#desk.say("There is nothing to confirm here: mark the values of a record.");
  }

  /** Say yes to the first found record that nobody spoke of. @returns {boolean} whether there was one */
  #acceptRecord() {
    const { page } = this.#desk;
    const [found] = page ? unsaidRecords(page) : [];
    if (!page || !found) return false;
    const record = page.records.length;
    this.#desk.change(`record ${record + 1} confirmed`, [{ kind: "values", page: page.id, record, values: found }]);
    return true;
  }

  /** @param {Page} page */
  #acceptSuggestions(page) {
    const { state, cursor } = this.#desk;
    const offered = state.attributes
      .map(({ name }) => ({ page: page.id, attribute: name, record: null }))
      .filter((place) => isOffered(cellOf(state, place)) && isOpen(state, cursor, place));
    const values = offered
      .map((place) => /** @type {const} */ ([place.attribute, cellOf(state, place).values]))
      .filter(([, found]) => arePlaced(found));
    if (!values.length) return this.#desk.say("There is no suggestion to confirm on this page.");
    this.#desk.change(`${values.length} suggestions confirmed`, [
      { kind: "values", page: page.id, record: null, values: Object.fromEntries(values) },
    ]);
    this.#going.lookAtNext();
  }

  /** Ask no more about something as it is now. @param {Place | Question} place */
  #dismiss(place) {
    const { dismissed } = this.#desk.cursor;
    const known = new Set(dismissed).add(fingerprint(this.#desk.state, place));
    this.#desk.move({ dismissed: known, asked: null });
    this.#model.change("answered", [], () => this.#desk.move({ dismissed }));
  }
}
