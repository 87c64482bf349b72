// The annotator: what the mouse, the keys and the server ask for, who does it, and how it is shown.

import { Frame } from "../archived/frame.js";
import { Palette } from "../archived/palette.js";
import { cutsOf } from "../archived/picking.js";
import { Answering } from "./answering.js";
import { Bars } from "./bars.js";
import { Chips } from "./chips.js";
import {
  adviceFor, cursorOn, isAtCursor, isDismissed, openOffers, openQuestions, placeToMark, shownQuestion,
} from "./cursor.js";
import { Desk } from "./desk.js";
import { partsOf } from "./dom.js";
import { Going } from "./going.js";
import { actionOf, placeOfDigit } from "./keys.js";
import { unsaidRecords } from "./lists.js";
import { Marking } from "./marking.js";
import { marksOf } from "./marks.js";
import { Model } from "./model.js";
import { Panel } from "./panel.js";
import { Pointing } from "./pointing.js";
import { attributeOf, cellOf, isOffered, pageOf } from "./state.js";

/** @import {Api} from "./api.js" */
/** @import {Change, NamedSchema, Place, Schema, State} from "./types.js" */

export class Workbench {
  #api;
  #me;
  #mayChange;
  #part;
  #model;
  #desk;
  #bars;
  #chips;
  #panel;
  #frame;
  #pointing;
  #marking;
  #going;
  #answering;
  #palette = new Palette();
  /** Place of the chosen attribute: another one is there once it is renamed or removed. */
  #chosenPlace = 0;
  #isLookingForKnown = false;
  #isPageMissing;
  #hasAccount;

  /**
   * @param {HTMLElement} root
   * @param {Api} api
   * @param {State} state
   * @param {{me: string, hasAccount: boolean, mayChange: boolean, page: number | null}} visitor
   */
  constructor(root, api, state, { me, hasAccount, mayChange, page }) {
    this.#api = api;
    this.#me = me;
    this.#hasAccount = hasAccount;
    this.#mayChange = mayChange;
    this.#part = partsOf(root);
    this.#bars = new Bars(this.#part);
    this.#model = new Model(api, state, me, {
      onChange: () => this.#going.update(),
      onMessage: (sentence) => this.#bars.say(sentence),
      onRefuse: (changes) => this.#showRefused(changes),
    });
    this.#isPageMissing = page !== null && !pageOf(state, page);
    const cursor = cursorOn(page !== null && !this.#isPageMissing ? page : state.pages[0].id);
    this.#desk = new Desk(this.#model, cursor, mayChange, {
      say: (sentence) => this.#bars.say(sentence),
      render: () => this.#render(),
    });
    this.#chips = new Chips(this.#part("chips"), this.#part("editor"), mayChange, {
      choose: (name) => this.#choose(name),
      problemOfName: (name, former) => problemOfName(this.#desk.state, name, former),
      setAttribute: (name, schema) => this.#setAttribute(name, schema),
      removeAttribute: (name) => this.#desk.change(`removed ${name}`, [{ kind: "removal", name }]),
      leave: () => this.#part("page").focus(),
    });
    this.#frame = new Frame(/** @type {HTMLIFrameElement} */ (root.querySelector("iframe")), {
      onPoint: (element, text) => this.#pointing.point(element, text),
      onClick: (element, text, isMore) => this.#marking.assign(this.#pointing.clicked(element, text), isMore),
      onSelect: (target, isDone, isMore) => {
        this.#pointing.aim(target);
        if (isDone) this.#marking.assign(target, isMore);
      },
      onLeave: () => this.#pointing.leave(),
      onKey: (event) => this.#press(event),
    });
    this.#pointing = new Pointing(this.#desk, this.#frame, this.#bars, this.#palette);
    this.#marking = new Marking(this.#desk, this.#frame, this.#pointing, () => this.#chips.add());
    this.#going = new Going(this.#desk, this.#frame, this.#part("page"), this.#pointing, this.#marking);
    this.#answering = new Answering(this.#desk, this.#model, this.#going, () => this.#panel.showOffers());
    this.#panel = new Panel(root, {
      goTo: (place) => this.#going.goTo(place),
      goToPage: (id) => this.#going.goToPage(id),
      accept: () => this.#answering.accept(),
      sayAbsent: () => this.#answering.sayAbsent(),
      refuse: () => this.#answering.refuse(),
      takeFound: () => this.#answering.takeFound(),
      acceptAll: () => this.#answering.acceptAll(),
      nextQuestion: () => this.#going.goToQuestion(1),
    });
    this.#listen();
  }

  /** Show the first page, then what is known of it from elsewhere. */
  async start() {
    await this.#going.showPage();
    if (this.#isPageMissing) this.#desk.say("The page asked for is not among the sample pages: this is page 1.");
    if (!this.#desk.state.attributes.length) this.#chips.add();
    this.#api.follow((news) => this.#hear(news));
    if (this.#mayChange) await this.#lookUpKnown();
  }

  async #lookUpKnown() {
    this.#isLookingForKnown = true;
    this.#render();
    try {
      this.#model.receive(await this.#api.known());
    } catch (error) {
      this.#desk.say(`Known values could not be looked up: ${/** @type {Error} */ (error).message}`);
    }
    this.#isLookingForKnown = false;
    const hasBegun = this.#model.canUndo || this.#pointing.target !== null;
    if (hasBegun) this.#render();
    else this.#going.lookAtNext();
  }

  #listen() {
    document.addEventListener("keydown", (event) => this.#press(event));
    // A click on a button leaves the focus where it is, so that Enter goes on meaning what it meant.
    document.addEventListener("mousedown", (event) => {
      if (/** @type {Element} */ (event.target).closest("button")) event.preventDefault();
    });
    window.addEventListener("beforeunload", (event) => this.#model.waiting && event.preventDefault());
    // Who had to sign in again comes back from doing so.
    window.addEventListener("focus", () => this.#model.problem?.mustSignIn && this.#model.retry());
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.#render());
    const buttons = {
      undo: () => this.#undo(), absent: () => this.#answering.sayAbsent(), help: () => this.#bars.help(),
      list: () => this.#marking.toggleList(), remote: () => this.#going.toggleRemote(),
      next: () => this.#going.step(1), previous: () => this.#going.step(-1),
      finish: () => this.#finish(), drawer: () => this.#bars.toggleDrawer(),
    };
    for (const [name, action] of Object.entries(buttons)) this.#part(name).addEventListener("click", action);
  }

  // What keys ask for

  /** @param {KeyboardEvent} event */
  #press(event) {
    const action = actionOf(event);
    if (!action) return;
    event.preventDefault();
    const { key } = event;
    const actions = {
      choose: () => this.#choosePlace(placeOfDigit(key)),
      previousAttribute: () => this.#chooseBeside(-1),
      nextAttribute: () => this.#chooseBeside(1),
      walk: () => this.#pointing.walk(key),
      meaning: () => this.#pointing.turnMeaning(),
      cut: () => this.#pointing.cut(key === "[" ? "start" : "end", 1),
      uncut: () => this.#pointing.cut(key === "{" ? "start" : "end", -1),
      accept: () => this.#accept(),
      more: () => this.#assignMore(),
      absent: () => this.#answering.sayAbsent(),
      undo: () => this.#undo(),
      refuse: () => this.#answering.refuse(),
      takeFound: () => this.#answering.takeFound(),
      acceptAll: () => this.#answering.acceptAllInSight(),
      nextQuestion: () => this.#going.goToQuestion(1),
      previousQuestion: () => this.#going.goToQuestion(-1),
      nextPage: () => this.#going.step(1),
      previousPage: () => this.#going.step(-1),
      toggleList: () => this.#marking.toggleList(),
      newRecord: () => this.#marking.newRecord(),
      hide: () => this.#pointing.hide(),
      unhide: () => this.#frame.unhide(),
      toggleRemote: () => this.#going.toggleRemote(),
      addAttribute: () => this.#chips.add(),
      editAttribute: () => this.#editChosen(),
      help: () => this.#bars.help(),
      close: () => this.#close(),
    };
    actions[action]();
  }

  /** Assign what keys led to, else answer what is asked; what the mouse happens to be over takes a click. */
  #accept() {
    const { target, isWalkedTo } = this.#pointing;
    if (target && isWalkedTo) this.#marking.assign(target, false);
    else this.#answering.accept();
  }

  #assignMore() {
    const target = this.#pointing.outlined();
    if (target) this.#marking.assign(target, true);
  }

  #undo() {
    this.#marking.forgetTwins();
    this.#desk.say(this.#model.undo());
  }

  #close() {
    this.#chips.closeEditor();
    this.#pointing.aim(null);
    this.#desk.move({ exact: null, asked: null });
    this.#marking.forgetTwins();
    this.#part("page").focus();
    this.#render();
  }

  // Attributes

  /** @param {string} name */
  #choose(name) {
    this.#desk.move({ attribute: name, exact: null, asked: null });
    this.#desk.say("");
    if (!this.#pointing.isWalkedTo) {
      this.#pointing.aim(null);
      this.#going.revealPlace();
    }
    this.#render();
  }

  /** @param {number} place */
  #choosePlace(place) {
    const attribute = this.#desk.state.attributes[place];
    if (attribute) this.#choose(attribute.name);
    else this.#desk.say(`There is no attribute ${place + 1}; press + to add one.`);
  }

  /** @param {number} step */
  #chooseBeside(step) {
    const { state: { attributes }, cursor } = this.#desk;
    const place = attributes.findIndex(({ name }) => name === cursor.attribute);
    if (attributes.length) this.#choosePlace((place + step + attributes.length) % attributes.length);
  }

  /** @param {string} name @param {NamedSchema} schema */
  #setAttribute(name, schema) {
    const former = attributeOf(this.#desk.state, name);
    if (former && schema.name === name && isSameSchema(former, schema)) return this.#choose(name);
    if (this.#desk.cursor.attribute === name || !former) {
      this.#desk.move({ attribute: schema.name, exact: null, asked: null });
    }
    const label = former ? `changed ${schema.name}` : `added ${schema.name}`;
    this.#desk.change(label, [{ kind: "attribute", name, schema }]);
  }

  #editChosen() {
    const attribute = attributeOf(this.#desk.state, this.#desk.cursor.attribute);
    if (attribute) this.#chips.edit(attribute);
  }

  /** Show what was typed of attributes and not kept. @param {Change[]} changes */
  #showRefused(changes) {
    for (const change of changes) {
      if (change.kind !== "attribute") continue;
      this.#chips.showAgain(attributeOf(this.#desk.state, change.name), change.schema);
    }
  }

  // With others

  /** @param {{revision: string, author: string | null}} news */
  async #hear({ revision, author }) {
    if (!this.#model.isNews(revision)) return;
    if (author !== null && author !== this.#me) this.#bars.meet(author);
    await this.#model.refresh().catch(() => this.#desk.say("What others changed could not be fetched yet."));
  }

  async #finish() {
    const button = /** @type {HTMLButtonElement} */ (this.#part("finish"));
    button.disabled = true;
    this.#desk.say("Learning from all pages …");
    try {
      await this.#model.settled();
      location.href = (await this.#api.finish()).url;
    } catch (error) {
      this.#desk.say(/** @type {Error} */ (error).message);
      button.disabled = false;
    }
  }

  // Showing

  #render() {
    this.#chooseAnew();
    const { state, cursor, isList } = this.#desk;
    const page = this.#desk.page ?? state.pages[0];
    const question = shownQuestion(state, cursor);
    const toMark = this.#mayChange ? placeToMark(state, cursor) : null;
    this.#chips.render(state.attributes, state.offers, cursor.attribute);
    this.#panel.render({
      attributes: state.attributes,
      pages: state.pages,
      page,
      chosen: cursor.attribute,
      isList,
      unsaidRecords: unsaidRecords(page),
      offers: openOffers(state, cursor).length,
      advice: toMark && adviceFor(state, toMark),
      question,
      isAtCursor: question !== null && isAtCursor(state, cursor, question),
      questions: openQuestions(state, cursor),
      questioned: question && question.attribute !== null ? cellOf(state, /** @type {Place} */ (question)) : null,
      isRefused: (place) => isOffered(cellOf(state, place)) && isDismissed(state, cursor, place),
      unnamed: this.#hasAccount ? null : this.#me,
      problem: state.problem,
      mayChange: this.#mayChange,
      cutsOf: ({ pick }) => pick && cutsOf(this.#frame.element(pick.element), pick),
    });
    this.#bars.render(this.#model, page, isList, this.#isLookingForKnown, this.#going.isRemote);
    this.#frame.overlay?.draw(marksOf(state, cursor, (number) => this.#frame.element(number), this.#palette));
    this.#pointing.draw();
  }

  /** Choose the attribute that stands where the chosen one was, if that is gone. */
  #chooseAnew() {
    const { state: { attributes }, cursor } = this.#desk;
    const place = attributes.findIndex(({ name }) => name === cursor.attribute);
    if (place < 0) {
      const name = (attributes[this.#chosenPlace] ?? attributes[0])?.name ?? null;
      this.#desk.move({ attribute: name, exact: null, asked: null });
    } else this.#chosenPlace = place;
  }
}

/**
 * Why an attribute, which may have another name now, cannot be called so.
 * @param {State} state
 * @param {string} name
 * @param {string | null} former
 */
function problemOfName(state, name, former) {
  if (!name) return "An attribute needs a name, such as price.";
  if (name.startsWith("_")) return "Names that begin with _ are kept for other things: choose another.";
  const isTaken = name !== former && attributeOf(state, name);
  return isTaken ? `There is an attribute ${name} already: choose another name.` : null;
}

/** @param {Schema} a @param {Schema} b */
const isSameSchema = (a, b) =>
  a.multi === b.multi && a.mandatory === b.mandatory && a.constant === b.constant && a.type === b.type;
