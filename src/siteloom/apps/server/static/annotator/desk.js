// What a person works with: the state, where they are in it, and how they say something of it.

import { isList, placeOf } from "./cursor.js";
import { shortened } from "./dom.js";
import { pageOf, unplacedIn } from "./state.js";

/** @import {Cursor} from "./cursor.js" */
/** @import {Model} from "./model.js" */
/** @import {Change, Place, Value} from "./types.js" */

/**
 * @typedef {object} Screen
 * @property {(sentence: string) => void} say tell what happened
 * @property {() => void} render show how things are now
 */

export class Desk {
  #model;
  #cursor;
  #mayChange;
  #screen;

  /**
   * @param {Model} model
   * @param {Cursor} cursor
   * @param {boolean} mayChange
   * @param {Screen} screen
   */
  constructor(model, cursor, mayChange, screen) {
    this.#model = model;
    this.#cursor = cursor;
    this.#mayChange = mayChange;
    this.#screen = screen;
  }

  get state() {
    return this.#model.state;
  }

  get cursor() {
    return this.#cursor;
  }

  /** The page that the person is on. */
  get page() {
    return pageOf(this.state, this.#cursor.page);
  }

  /** The cell that the next value goes to. */
  get place() {
    return placeOf(this.state, this.#cursor);
  }

  /** Whether the page lists several records. */
  get isList() {
    return isList(this.state, this.#cursor);
  }

  /** @param {Partial<Cursor>} changes */
  move(changes) {
    this.#cursor = { ...this.#cursor, ...changes };
  }

  /** Tell what happened. @param {string} sentence */
  say(sentence) {
    this.#screen.say(sentence);
  }

  render() {
    this.#screen.render();
  }

  /**
   * @param {string} label what is done, for the person
   * @param {Change[]} changes
   * @returns {boolean} whether it could be done
   */
  change(label, changes) {
    const problem = this.#problemOf(changes);
    if (!problem) this.#model.change(label, changes);
    this.say(problem ?? `${label[0].toUpperCase()}${label.slice(1)}.`);
    return !problem;
  }

  /** @param {string} label @param {Place} place @param {Value[] | null} values */
  sayValues(label, place, values) {
    const { page, record, attribute } = place;
    return this.change(label, [{ kind: "values", page, record, values: { [attribute]: values } }]);
  }

  /** Why changes cannot be made. @param {Change[]} changes @returns {string | null} */
  #problemOf(changes) {
    if (!this.#mayChange) return "You may look at this, but not change it.";
    if (!changes.length) return "There is nothing to change here.";
    const lost = unplacedIn(changes);
    return lost ? `It is not known where “${shortened(lost.text, 40)}” stands: mark it on the page first.` : null;
  }
}
