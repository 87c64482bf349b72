// What is outlined on the page: by the mouse, or walked to with arrow keys.

import { cutAtWord, likelyMeaning, neighbour, nextMeaning } from "../archived/picking.js";
import { outlineOf } from "./marks.js";
import { attributeOf, cellOf, isSamePick, schemaInForce } from "./state.js";

/** @import {Bars} from "./bars.js" */
/** @import {Desk} from "./desk.js" */
/** @import {Frame} from "../archived/frame.js" */
/** @import {Palette} from "../archived/palette.js" */
/** @import {Target} from "./types.js" */

export class Pointing {
  #desk;
  #frame;
  #bars;
  #palette;
  /** @type {Target | null} */
  #target = null;
  #isWalkedTo = false;
  /** @type {Element | null} where the person pointed last, for walking on from there */
  #last = null;

  /** @param {Desk} desk @param {Frame} frame @param {Bars} bars @param {Palette} palette */
  constructor(desk, frame, bars, palette) {
    this.#desk = desk;
    this.#frame = frame;
    this.#bars = bars;
    this.#palette = palette;
  }

  get target() {
    return this.#target;
  }

  /** Whether keys led to the target, so that it stays wherever the mouse is. */
  get isWalkedTo() {
    return this.#isWalkedTo;
  }

  /** Outline what is meant, or nothing. @param {Target | null} target @param {boolean} [isWalkedTo] */
  aim(target, isWalkedTo = false) {
    this.#target = target;
    this.#isWalkedTo = target !== null && isWalkedTo;
    this.#last = target?.element ?? this.#last;
    this.draw();
  }

  /** Another page will be shown. */
  forget() {
    this.#target = null;
    this.#isWalkedTo = false;
    this.#last = null;
  }

  /** The mouse is over an element. @param {Element} element @param {Text | null} text */
  point(element, text) {
    const target = this.#targetAt(element, text);
    const former = this.#target;
    const isOther = former?.element !== element || (!this.#isWalkedTo && !isSamePick(former.pick, target.pick));
    if (isOther) this.aim(target);
  }

  /** What a click means. @param {Element} element @param {Text | null} text @returns {Target} */
  clicked(element, text) {
    const target = this.#target;
    return target?.element === element && this.#isWalkedTo ? target : this.#targetAt(element, text);
  }

  /** The mouse has left the page. */
  leave() {
    if (!this.#isWalkedTo) this.aim(null);
  }

  /** @param {string} key */
  walk(key) {
    const next = this.#target ? neighbour(this.#target.element, key) : this.#startOfWalk();
    if (!next) return;
    this.aim(this.#targetAt(next, null), true);
    this.#frame.reveal(next);
  }

  /** What is outlined; without anything, the person is told how to outline it. */
  outlined() {
    if (!this.#target) this.#desk.say("Outline a node first: hover over it, or walk to it with arrow keys.");
    return this.#target;
  }

  /** Mean another part of the element. */
  turnMeaning() {
    const target = this.outlined();
    if (target) this.aim({ ...target, pick: nextMeaning(target) }, true);
  }

  /** @param {"start" | "end"} end @param {1 | -1} direction */
  cut(end, direction) {
    const target = this.outlined();
    if (target) this.aim({ ...target, pick: cutAtWord(target, end, direction) }, true);
  }

  /** Do not show what is outlined. */
  hide() {
    const target = this.outlined();
    if (!target) return;
    this.#frame.hide(/** @type {HTMLElement} */ (target.element));
    this.aim(null);
    this.#desk.say("Hidden; Shift h shows it again.");
  }

  /** Draw the outline, and tell what it is around. */
  draw() {
    const { state, cursor } = this.#desk;
    const elements = (/** @type {number} */ number) => this.#frame.element(number);
    this.#frame.overlay?.point(outlineOf(state, cursor, this.#target, elements, this.#palette));
    this.#bars.hint(cursor.attribute ?? "", this.#target, this.#isWalkedTo);
  }

  /** @param {Element} element @param {Text | null} text @returns {Target} */
  #targetAt(element, text) {
    const attribute = attributeOf(this.#desk.state, this.#desk.cursor.attribute);
    return { element, pick: likelyMeaning(element, attribute ? schemaInForce(attribute).type : null, text) };
  }

  /** Where walking begins: at the value of the chosen attribute, else where the person was, else at the top. */
  #startOfWalk() {
    const { place, state } = this.#desk;
    const pick = place && cellOf(state, place).values[0]?.pick;
    const { body } = this.#frame;
    const top = body && neighbour(body, "ArrowDown");
    return (pick && this.#frame.element(pick.element)) ?? this.#last ?? top;
  }
}
