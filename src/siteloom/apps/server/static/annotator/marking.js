// Saying what is where: values by pointing at them, and whether a page lists several records.

import { areTwins, textOf } from "../archived/picking.js";
import { shortened } from "./dom.js";
import { asDetail, asList, recordAround } from "./lists.js";
import { attributeOf, cellOf, isOffered, isSamePick, schemaOf } from "./state.js";

/** @import {Desk} from "./desk.js" */
/** @import {Frame} from "../archived/frame.js" */
/** @import {Pointing} from "./pointing.js" */
/** @import {Change, Place, Target, Value} from "./types.js" */

export class Marking {
  #desk;
  #frame;
  #pointing;
  #askForName;
  /**
   * Two values given to one attribute, one after the other, that look like those of two records.
   * @type {{attribute: string, former: Value[], latter: Value[]} | null}
   */
  #twins = null;

  /**
   * @param {Desk} desk
   * @param {Frame} frame
   * @param {Pointing} pointing
   * @param {() => void} askForName asks for the name of an attribute
   */
  constructor(desk, frame, pointing, askForName) {
    this.#desk = desk;
    this.#frame = frame;
    this.#pointing = pointing;
    this.#askForName = askForName;
  }

  /** Something else than another value follows. */
  forgetTwins() {
    this.#twins = null;
  }

  /** @param {Target} target @param {boolean} isMore whether it is one more value */
  assign(target, isMore) {
    const place = this.#placeFor(target.element);
    if (!place) {
      this.#desk.say("Name an attribute first, then mark its value.");
      return this.#askForName();
    }
    const value = { text: textOf(target.element, target.pick), pick: target.pick, confidence: null };
    if (!value.text) return this.#desk.say("Nothing can be read there: choose a place with some text.");
    if (isMore) return this.#assignMore(value, place);
    const former = cellOf(this.#desk.state, place);
    this.#twins = this.#twinsOf(place, former.state === "said" ? former.values : [], value);
    this.#desk.sayValues(`${place.attribute} is “${shortened(value.text, 40)}”`, place, [value]);
    this.#stayAt(place);
    if (this.#twins) this.#desk.say("Does this page list several records? Then press l.");
  }

  /** Say that the page lists several records, or that it does not. */
  toggleList() {
    const { page, isList: wasList } = this.#desk;
    if (!page) return;
    const changes = wasList ? asDetail(page) : asList(page, this.#twins);
    const label = wasList ? "this page has one record" : "this page lists several records";
    if (changes.length && !this.#desk.change(label, changes)) return;
    const lists = new Map(this.#desk.cursor.lists).set(page.id, !wasList);
    this.#desk.move({ exact: null, record: this.#twins ? 1 : 0, lists });
    this.#twins = null;
    this.#desk.say(`${label[0].toUpperCase()}${label.slice(1)}.`);
    this.#desk.render();
  }

  newRecord() {
    const { page, isList } = this.#desk;
    if (!page || !isList) return this.#desk.say("Press l first if this page lists several records.");
    this.#desk.move({ record: page.records.length, exact: null });
    this.#desk.say(`The next value begins record ${page.records.length + 1}.`);
  }

  /**
   * The cell that a value belongs to; on a list page the record that is found around it tells.
   * @param {Element} element
   */
  #placeFor(element) {
    const { place, page, cursor } = this.#desk;
    if (!place || !page || place.record === null || cursor.exact) return place;
    const record = recordAround(page, (number) => this.#frame.element(number)?.contains(element) ?? false);
    return record === null ? place : { ...place, record };
  }

  /** Add a value to those of a cell, or take it from them. @param {Value} value @param {Place} place */
  #assignMore(value, place) {
    const { state, cursor } = this.#desk;
    const isInList = place.record !== null && !cursor.exact;
    const at = isInList ? { ...place, record: Math.min(cursor.record, place.record ?? 0) } : place;
    const cell = cellOf(state, at);
    const former = isOffered(cell) || cell.state === "said" ? cell.values : [];
    const kept = former.filter(({ pick }) => !isSamePick(pick, value.pick));
    const values = kept.length < former.length ? kept : [...former, value];
    const attribute = attributeOf(state, at.attribute);
    /** @type {Change[]} */
    const changes = [{ kind: "values", page: at.page, record: at.record, values: { [at.attribute]: values } }];
    if (values.length > 1 && attribute?.multi === false) {
      const { name } = attribute;
      changes.unshift({ kind: "attribute", name, schema: { ...schemaOf(attribute), multi: true, name } });
    }
    if (this.#desk.change(`${at.attribute} has ${values.length} values here`, changes)) this.#stayAt(at);
  }

  /** @param {Place} place @param {Value[]} former @param {Value} latter */
  #twinsOf(place, former, latter) {
    if (place.record !== null || former.length !== 1) return null;
    const [one, other] = [former[0], latter].map(({ pick }) => pick && this.#frame.element(pick.element));
    return one && other && areTwins(one, other) ? { attribute: place.attribute, former, latter: [latter] } : null;
  }

  /** Values of the same record follow. @param {Place} place */
  #stayAt(place) {
    this.#desk.move({ record: place.record ?? 0, exact: null, asked: null });
    this.#pointing.aim(null);
    this.#desk.render();
  }
}
