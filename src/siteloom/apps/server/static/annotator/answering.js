// Answering: yes or no to what is asked, suggested or found.

import { adviceFor, fingerprint, isAtCursor, openOffers, placeToMark, shownQuestion } from "./cursor.js";
import { withAllRecords } from "./lists.js";
import { cellOf, hasNoAnswer, isSaid } from "./state.js";

/** @import {Desk} from "./desk.js" */
/** @import {Going} from "./going.js" */
/** @import {Model} from "./model.js" */
/** @import {Change, Page, Place, Question} from "./types.js" */

export class Answering {
  #desk;
  #model;
  #going;
  #areInSight;

  /**
   * @param {Desk} desk
   * @param {Model} model
   * @param {Going} going
   * @param {() => boolean} areInSight whether the values of the page are seen to their end; if not, shows them
   */
  constructor(desk, model, going, areInSight) {
    this.#areInSight = areInSight;
    this.#desk = desk;
    this.#model = model;
    this.#going = going;
  }

  /** Say yes to the shown question; if it is about something else than what the person looks at, show that first. */
  accept() {
    const { state, cursor, place } = this.#desk;
    const question = shownQuestion(state, cursor);
    if (!question) return this.#desk.say(this.#advice());
    if (!isAtCursor(state, cursor, question)) return this.#going.goTo(question);
    if (!place || question.attribute === null) return this.#acceptRecords(question);
    const cell = cellOf(state, place);
    if (isSaid(cell)) this.#dismiss(place, `${place.attribute} is kept`);
    else if (cell.state === "empty") this.#desk.sayValues(`${place.attribute} is absent here`, place, []);
    else if (!this.#desk.sayValues(`${place.attribute} confirmed`, place, cell.values)) return;
    this.#going.lookAtNext();
  }

  /** Say yes to all that is suggested on the page, once all of it is in sight. */
  acceptAllInSight() {
    if (this.#areInSight()) this.acceptAll();
    else this.#desk.say("These values would be confirmed: look at them, then press the same again.");
  }

  /** Say yes to all that is suggested on the page. */
  acceptAll() {
    const { page, isList } = this.#desk;
    if (!page) return;
    if (isList) this.#confirm("records", page.found_records.length, withAllRecords(page));
    else this.#acceptSuggestions(page);
  }

  refuse() {
    const { state, cursor } = this.#desk;
    const question = shownQuestion(state, cursor);
    if (!question || hasNoAnswer(question)) return this.#desk.say("There is nothing to refuse here.");
    if (!isAtCursor(state, cursor, question)) return this.#going.goTo(question);
    if (question.kind === "differs") {
      return this.#desk.say("Press Enter to keep what was said, u to use what was found, or click the right value.");
    }
    const { attribute } = question;
    this.#dismiss(question, attribute === null ? "records refused" : `what was found of ${attribute} is refused`);
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
    if (!hasNoAnswer(question)) return this.acceptAllInSight();
    this.#desk.say("There is nothing to confirm here: mark the values of a record.");
  }

  /** @param {Page} page */
  #acceptSuggestions(page) {
    const { state, cursor } = this.#desk;
    const offers = openOffers(state, cursor);
    if (!offers.length) return this.#desk.say("There is no suggestion to confirm on this page.");
    const values = Object.fromEntries(offers.map((place) => [place.attribute, cellOf(state, place).values]));
    this.#confirm("suggestions", offers.length, [{ kind: "values", page: page.id, record: null, values }]);
    this.#going.lookAtNext();
  }

  /** @param {string} what @param {number} count @param {Change[]} changes */
  #confirm(what, count, changes) {
    const number = this.#desk.page?.number;
    if (!this.#desk.change(`${count} ${what} of page ${number} confirmed`, changes)) return;
    this.#desk.say(`${count} ${what} of page ${number} confirmed; z takes that back.`);
  }

  /** What to do when nothing is asked. */
  #advice() {
    const place = placeToMark(this.#desk.state, this.#desk.cursor);
    return place ? adviceFor(this.#desk.state, place) : "There is no open question.";
  }

  /** Ask no more about something as it is now. @param {Place | Question} place @param {string} label */
  #dismiss(place, label) {
    const { dismissed } = this.#desk.cursor;
    const known = new Set(dismissed).add(fingerprint(this.#desk.state, place));
    this.#desk.move({ dismissed: known, asked: null });
    this.#model.change(label, [], () => this.#desk.move({ dismissed }));
    this.#desk.say(`${label[0].toUpperCase()}${label.slice(1)}.`);
  }
}
