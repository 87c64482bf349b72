// Going about: from page to page, from question to question, and the page that is shown.

import { isRemoteAllowed, toggleRemote } from "../archived/remote.js";
import { nextOpen, pageAfter, questionAfter } from "./cursor.js";
import { cellOf, pageOf } from "./state.js";

/** @import {Desk} from "./desk.js" */
/** @import {Frame} from "../archived/frame.js" */
/** @import {Marking} from "./marking.js" */
/** @import {Pointing} from "./pointing.js" */
/** @import {Place, Question} from "./types.js" */

export class Going {
  #desk;
  #frame;
  #region;
  #pointing;
  #marking;
  #isRemote = isRemoteAllowed();
  /** The version of the page that is shown. */
  #version = "";

  /**
   * @param {Desk} desk
   * @param {Frame} frame
   * @param {HTMLElement} region where the page is shown
   * @param {Pointing} pointing
   * @param {Marking} marking
   */
  constructor(desk, frame, region, pointing, marking) {
    this.#desk = desk;
    this.#frame = frame;
    this.#region = region;
    this.#pointing = pointing;
    this.#marking = marking;
  }

  /** Whether pictures are loaded from the web. */
  get isRemote() {
    return this.#isRemote;
  }

  /** @param {Place | Question} place */
  async goTo(place) {
    if (place.page !== this.#desk.cursor.page) await this.goToPage(place.page);
    const { page, attribute, record } = place;
    const exact = attribute === null || record === null ? null : { page, attribute, record };
    const asked = "kind" in place ? place : null;
    this.#desk.move({ attribute: attribute ?? this.#desk.cursor.attribute, exact, asked });
    this.#pointing.aim(null);
    if (!this.revealPlace()) this.#reveal(this.#nearValue());
    this.#desk.render();
  }

  /** @param {number} step */
  goToQuestion(step) {
    const question = questionAfter(this.#desk.state, this.#desk.cursor, step);
    this.#desk.say("");
    if (question) this.goTo(question);
    else this.#desk.say("There is no open question.");
  }

  /** Go some pages on. @param {number} step */
  step(step) {
    const page = pageAfter(this.#desk.state, this.#desk.cursor, step);
    if (page) this.goToPage(page.id);
    else this.#desk.say(step > 0 ? "This is the last page." : "This is the first page.");
  }

  /** @param {number} id */
  async goToPage(id) {
    const page = pageOf(this.#desk.state, id);
    const record = Math.max(0, (page?.records.length ?? 0) - 1);
    this.#desk.move({ page: id, exact: null, asked: null, record });
    history.replaceState(null, "", `?page=${id}`);
    this.#desk.say("");
    await this.showPage();
  }

  async showPage() {
    const { page } = this.#desk;
    if (!page) return;
    this.#version = page.version;
    this.#pointing.forget();
    this.#marking.forgetTwins();
    this.#desk.render();
    this.#region.setAttribute("aria-busy", "true");
    try {
      if (!(await this.#frame.show(page, this.#isRemote))) return;
    } catch (error) {
      this.#desk.say(/** @type {Error} */ (error).message);
    }
    this.#region.removeAttribute("aria-busy");
    if (!this.lookAtNext()) this.#reveal(this.#firstValue());
  }

  /** Show how things are now; the page itself only if it is another version or gone. */
  update() {
    const { page, state } = this.#desk;
    if (page?.version === this.#version) return this.#desk.render();
    if (!page) return this.goToPage(state.pages[0].id);
    this.#desk.say("Another version of this page is shown now.");
    this.showPage();
  }

  /**
   * Turn to the next cell of this page that asks for something; without one, stay.
   * @returns {boolean} whether there is one
   */
  lookAtNext() {
    const { state, cursor } = this.#desk;
    const next = nextOpen(state, cursor);
    if (next && next.page === cursor.page) {
      this.goTo(next);
      return true;
    }
    this.#desk.move({ attribute: cursor.attribute ?? state.attributes[0]?.name ?? null });
    this.#pointing.aim(null);
    this.#desk.render();
    return false;
  }

  /** Bring the value of the chosen attribute into view. @returns {boolean} whether there is one */
  revealPlace() {
    const { place, state } = this.#desk;
    const pick = place && cellOf(state, place).values[0]?.pick;
    return this.#reveal(pick ? pick.element : null);
  }

  /** @param {number | null} number of an element @returns {boolean} whether it is on the page */
  #reveal(number) {
    const element = number === null ? undefined : this.#frame.element(number);
    if (element) this.#frame.reveal(element);
    return element !== undefined;
  }

  /** Where the value of another attribute stands, the nearest in their order: what is asked may be near it. */
  #nearValue() {
    const { place, page, state: { attributes } } = this.#desk;
    if (!place || !page) return null;
    const cells = place.record === null ? page.cells : page.records[place.record] ?? {};
    const own = attributes.findIndex(({ name }) => name === place.attribute);
    const near = attributes
      .map(({ name }, index) => ({ distance: Math.abs(index - own), pick: cells[name]?.values[0]?.pick }))
      .filter(({ pick }) => pick)
      .sort((one, other) => one.distance - other.distance);
    return near[0]?.pick?.element ?? this.#firstValue();
  }

  /** Where the first value of the page stands. */
  #firstValue() {
    const { page } = this.#desk;
    const said = [page?.cells ?? {}, ...(page?.records ?? [])]
      .flatMap((cells) => Object.values(cells)).flatMap(({ values }) => values);
    const found = (page?.found_records ?? []).flatMap((record) => Object.values(record).flat());
    const numbers = [...said, ...found].flatMap(({ pick }) => (pick ? [pick.element] : []));
    return numbers.length ? Math.min(...numbers) : null;
  }

  /** Load pictures from the web from now on, or no more; the page is shown anew. */
  toggleRemote() {
    this.#isRemote = toggleRemote();
    this.#desk.say(this.#isRemote ? "Pictures are loaded from the web." : "Nothing is loaded from the web.");
    this.showPage();
  }
}
