// The annotator: what the mouse, the keys and the server do to the state, and how it is shown.

import { Bars } from "./bars.js";
import { Chips } from "./chips.js";
import {
  cursorOn, fingerprint, isList, isOpen, nextOpen, openQuestions, pageAfter, placeOf, questionAfter, shownQuestion,
} from "./cursor.js";
import { partsOf, shortened } from "./dom.js";
import { Frame } from "./frame.js";
import { actionOf, placeOfDigit } from "./keys.js";
import { asDetail, asList, recordAround, unsaidRecords, withAllRecords } from "./lists.js";
import { marksOf, outlineOf, Palette } from "./marks.js";
import { Model } from "./model.js";
import { Panel } from "./panel.js";
import {
  areTwins, cutAtWord, cutsOf, likelyMeaning, neighbour, nextMeaning, textOf,
} from "./picking.js";
import {
  arePlaced, attributeOf, cellOf, hasNoAnswer, isOffered, isSaid, isSamePick, isSamePlace, pageOf, schemaInForce,
  schemaOf, unplacedIn,
} from "./state.js";

/** @import {Api} from "./api.js" */
/** @import {Cursor} from "./cursor.js" */
/** @import {Change, NamedSchema, Place, Question, Schema, State, Target, Value} from "./types.js" */

/** Where it is kept until the tab is closed whether pictures may be loaded from the web. */
const REMOTE = "siteloom-remote";

export class Workbench {
  #api;
  #me;
  #mayChange;
  #part;
  #model;
  #cursor;
  #bars;
  #chips;
  #panel;
  #frame;
  #palette = new Palette();
  /** @type {Target | null} */
  #target = null;
  #isTargetWalkedTo = false;
  /** @type {Element | null} where the person pointed last, for walking on from there */
  #pointedLast = null;
  /** Place of the chosen attribute: another one is there once it is renamed or removed. */
  #chosenPlace = 0;
  /**
   * Two values given to one attribute, one after the other, that look like those of two records.
   * @type {{attribute: string, former: Value[], latter: Value[]} | null}
   */
  #twins = null;
  #isLookingForKnown = false;
  #isRemote = sessionStorage.getItem(REMOTE) !== null;
  /** The version of the page that is shown. */
  #version = "";

  /**
   * @param {HTMLElement} root
   * @param {Api} api
   * @param {State} state
   * @param {{me: string, mayChange: boolean, page: number | null}} visitor
   */
  constructor(root, api, state, { me, mayChange, page }) {
    this.#api = api;
    this.#me = me;
    this.#mayChange = mayChange;
    this.#part = partsOf(root);
    this.#bars = new Bars(this.#part);
    this.#model = new Model(api, state, me, {
      onChange: () => this.#update(),
      onMessage: (sentence) => this.#say(sentence),
      onRefuse: (changes) => this.#showRefused(changes),
    });
    this.#cursor = cursorOn(page !== null && pageOf(state, page) ? page : state.pages[0].id);
    this.#chips = new Chips(this.#part("chips"), this.#part("editor"), mayChange, {
      choose: (name) => this.#choose(name),
      problemOfName: (name, former) => problemOfName(this.#model.state, name, former),
      setAttribute: (name, schema) => this.#setAttribute(name, schema),
      removeAttribute: (name) => this.#change(`removed ${name}`, [{ kind: "removal", name }]),
      leave: () => this.#part("page").focus(),
    });
    this.#panel = new Panel(root, {
      goTo: (place) => this.#goTo(place),
      goToPage: (id) => this.#goToPage(id),
      accept: () => this.#acceptAsked(),
      refuse: () => this.#refuse(),
      takeFound: () => this.#takeFound(),
      acceptAll: () => this.#acceptAll(),
      nextQuestion: () => this.#goToQuestion(1),
    });
    this.#frame = new Frame(/** @type {HTMLIFrameElement} */ (root.querySelector("iframe")), {
      onPoint: (element, text) => this.#point(element, text),
      onClick: (element, text, isMore) => this.#click(element, text, isMore),
      onSelect: (target, isDone, isMore) => this.#select(target, isDone, isMore),
      onLeave: () => this.#isTargetWalkedTo || this.#aim(null),
      onKey: (event) => this.#press(event),
    });
    this.#listen();
  }

  /** Show the first page, then what is known of it from elsewhere. */
  async start() {
    await this.#showPage();
    if (!this.#model.state.attributes.length) this.#chips.add();
    this.#api.follow((news) => this.#hear(news));
    if (this.#mayChange) await this.#lookUpKnown();
  }

  async #lookUpKnown() {
    this.#isLookingForKnown = true;
    this.#render();
    try {
      this.#model.receive(await this.#api.known());
    } catch (error) {
      this.#say(`Known values could not be looked up: ${/** @type {Error} */ (error).message}`);
    }
    this.#isLookingForKnown = false;
    const hasBegun = this.#model.canUndo || this.#target !== null;
    if (hasBegun) this.#render();
    else this.#lookAtNext();
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
      undo: () => this.#undo(), absent: () => this.#absent(), help: () => this.#bars.help(),
      list: () => this.#toggleList(), next: () => this.#step(1), previous: () => this.#step(-1),
      finish: () => this.#finish(), drawer: () => this.#bars.toggleDrawer(), remote: () => this.#toggleRemote(),
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
      walk: () => this.#walk(key),
      meaning: () => this.#target && this.#aim({ ...this.#target, pick: nextMeaning(this.#target) }, true),
      cut: () => this.#cut(key === "[" ? "start" : "end", 1),
      uncut: () => this.#cut(key === "{" ? "start" : "end", -1),
      accept: () => this.#accept(),
      more: () => this.#target && this.#assign(this.#target, true),
      absent: () => this.#absent(),
      undo: () => this.#undo(),
      refuse: () => this.#refuse(),
      takeFound: () => this.#takeFound(),
      acceptAll: () => this.#acceptAll(),
      nextQuestion: () => this.#goToQuestion(1),
      previousQuestion: () => this.#goToQuestion(-1),
      nextPage: () => this.#step(1),
      previousPage: () => this.#step(-1),
      toggleList: () => this.#toggleList(),
      newRecord: () => this.#newRecord(),
      hide: () => this.#hide(),
      unhide: () => this.#frame.unhide(),
      toggleRemote: () => this.#toggleRemote(),
      addAttribute: () => this.#chips.add(),
      editAttribute: () => this.#editChosen(),
      help: () => this.#bars.help(),
      close: () => this.#close(),
    };
    actions[action]();
  }

  // Attributes

  /** @param {string} name */
  #choose(name) {
    this.#move({ attribute: name, exact: null, asked: null });
    if (!this.#isTargetWalkedTo) {
      this.#aim(null);
      this.#revealPlace();
    }
    this.#render();
  }

  /** @param {number} place */
  #choosePlace(place) {
    const attribute = this.#model.state.attributes[place];
    if (attribute) this.#choose(attribute.name);
    else this.#say(`There is no attribute ${place + 1}; press + to add one.`);
  }

  /** @param {number} step */
  #chooseBeside(step) {
    const { attributes } = this.#model.state;
    const place = attributes.findIndex(({ name }) => name === this.#cursor.attribute);
    if (attributes.length) this.#choosePlace((place + step + attributes.length) % attributes.length);
  }

  /** @param {string} name @param {NamedSchema} schema */
  #setAttribute(name, schema) {
    const former = attributeOf(this.#model.state, name);
    if (former && schema.name === name && isSameSchema(former, schema)) return this.#choose(name);
    if (this.#cursor.attribute === name || !former) this.#move({ attribute: schema.name, exact: null });
    this.#change(former ? `changed ${schema.name}` : `added ${schema.name}`, [{ kind: "attribute", name, schema }]);
  }

  /** Show what was typed of attributes and not kept. @param {Change[]} changes */
  #showRefused(changes) {
    for (const change of changes) {
      if (change.kind !== "attribute") continue;
      this.#chips.showAgain(attributeOf(this.#model.state, change.name), change.schema);
    }
  }

  #editChosen() {
    const attribute = attributeOf(this.#model.state, this.#cursor.attribute);
    if (attribute) this.#chips.edit(attribute);
  }

  // Pointing and walking

  /** Outline what is meant, or nothing. @param {Target | null} target @param {boolean} [isWalkedTo] */
  #aim(target, isWalkedTo = false) {
    this.#target = target;
    this.#isTargetWalkedTo = target !== null && isWalkedTo;
    this.#pointedLast = target?.element ?? this.#pointedLast;
    this.#drawOutline();
    this.#bars.hint(this.#cursor.attribute ?? "", this.#target);
  }

  /** @param {Element} element @param {Text | null} text @returns {Target} */
  #targetAt(element, text) {
    const attribute = attributeOf(this.#model.state, this.#cursor.attribute);
    return { element, pick: likelyMeaning(element, attribute ? schemaInForce(attribute).type : null, text) };
  }

  /** @param {Element} element @param {Text | null} text */
  #point(element, text) {
    const target = this.#targetAt(element, text);
    const former = this.#target;
    const isOther = former?.element !== element || (!this.#isTargetWalkedTo && !isSamePick(former.pick, target.pick));
    if (isOther) this.#aim(target);
  }

  /** @param {Element} element @param {Text | null} text @param {boolean} isMore */
  #click(element, text, isMore) {
    const isOutlined = this.#target?.element === element && this.#isTargetWalkedTo;
    this.#assign(isOutlined ? /** @type {Target} */ (this.#target) : this.#targetAt(element, text), isMore);
  }

  /** @param {Target} target @param {boolean} isDone @param {boolean} isMore */
  #select(target, isDone, isMore) {
    this.#aim(target);
    if (isDone) this.#assign(target, isMore);
  }

  /** @param {string} key */
  #walk(key) {
    const next = this.#target ? neighbour(this.#target.element, key) : this.#startOfWalk();
    if (!next) return;
    this.#aim(this.#targetAt(next, null), true);
    this.#frame.reveal(next);
  }

  /** Where walking begins: at the value of the chosen attribute, else where the person was, else at the top. */
  #startOfWalk() {
    const place = placeOf(this.#model.state, this.#cursor);
    const pick = place && cellOf(this.#model.state, place).values[0]?.pick;
    const { body } = this.#frame;
    const top = body && neighbour(body, "ArrowDown");
    return (pick && this.#frame.element(pick.element)) ?? this.#pointedLast ?? top;
  }

  /** @param {"start" | "end"} end @param {1 | -1} direction */
  #cut(end, direction) {
    if (this.#target) this.#aim({ ...this.#target, pick: cutAtWord(this.#target, end, direction) }, true);
  }

  #hide() {
    if (!this.#target) return this.#say("Outline what is to be hidden first.");
    this.#frame.hide(/** @type {HTMLElement} */ (this.#target.element));
    this.#aim(null);
    this.#say("Hidden; Shift h shows it again.");
  }

  // Saying what is where

  /**
   * @param {string} label what is done, for the person
   * @param {Change[]} changes
   * @returns {boolean} whether it could be done
   */
  #change(label, changes) {
    const problem = this.#problemOf(changes);
    if (!problem) this.#model.change(label, changes);
    this.#say(problem ?? `${label[0].toUpperCase()}${label.slice(1)}.`);
    return !problem;
  }

  /** Why changes cannot be made. @param {Change[]} changes @returns {string | null} */
  #problemOf(changes) {
    if (!this.#mayChange) return "You may look at this, but not change it.";
    if (!changes.length) return "There is nothing to change here.";
    const lost = unplacedIn(changes);
    return lost ? `It is not known where “${shortened(lost.text, 40)}” stands: mark it on the page first.` : null;
  }

  /** @param {string} label @param {Place} place @param {Value[] | null} values */
  #sayValues(label, place, values) {
    const { page, record, attribute } = place;
    return this.#change(label, [{ kind: "values", page, record, values: { [attribute]: values } }]);
  }

  /** @param {Target} target @param {boolean} isMore */
  #assign(target, isMore) {
    const { state } = this.#model;
    const place = this.#placeFor(target.element);
    if (!place) {
      this.#say("Name an attribute first, then mark its value.");
      return this.#chips.add();
    }
    const value = { text: textOf(target.element, target.pick), pick: target.pick, confidence: null };
    if (!value.text) return this.#say("Nothing can be read there: choose a place with some text.");
    if (isMore) return this.#assignMore(value, place);
    const former = cellOf(state, place);
    this.#twins = this.#twinsOf(place, former.state === "said" ? former.values : [], value);
    this.#sayValues(`${place.attribute} is “${shortened(value.text, 40)}”`, place, [value]);
    this.#stayAt(place);
    if (this.#twins) this.#say("Does this page list several records? Then press l.");
  }

  /**
   * The cell that a value belongs to; on a list page the record that is found around it tells.
   * @param {Element} element
   */
  #placeFor(element) {
    const { state } = this.#model;
    const place = placeOf(state, this.#cursor);
    const page = pageOf(state, this.#cursor.page);
    if (!place || !page || place.record === null || this.#cursor.exact) return place;
    const record = recordAround(page, (number) => this.#frame.element(number)?.contains(element) ?? false);
    return record === null ? place : { ...place, record };
  }

  /** Add a value to those of a cell, or take it from them. @param {Value} value @param {Place} place */
  #assignMore(value, place) {
    const { state } = this.#model;
    const isInList = place.record !== null && !this.#cursor.exact;
    const at = isInList ? { ...place, record: Math.min(this.#cursor.record, place.record ?? 0) } : place;
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
    if (this.#change(`${at.attribute} has ${values.length} values here`, changes)) this.#stayAt(at);
  }

  /** @param {Place} place @param {Value[]} former @param {Value} latter */
  #twinsOf(place, former, latter) {
    if (place.record !== null || former.length !== 1) return null;
    const [one, other] = [former[0], latter].map(({ pick }) => pick && this.#frame.element(pick.element));
    return one && other && areTwins(one, other) ? { attribute: place.attribute, former, latter: [latter] } : null;
  }

  /** Values of the same record follow. @param {Place} place */
  #stayAt(place) {
    this.#move({ record: place.record ?? 0, exact: null, asked: null });
    this.#aim(null);
    this.#render();
  }

  #accept() {
    if (this.#target && this.#isTargetWalkedTo) return this.#assign(this.#target, false);
    const { state } = this.#model;
    const place = placeOf(state, this.#cursor);
    const isAsked = this.#cursor.asked !== null && shownQuestion(state, this.#cursor)?.page === this.#cursor.page;
    if (isAsked || (place && isOpen(state, this.#cursor, place))) return this.#acceptAsked();
    if (isList(state, this.#cursor) && this.#acceptRecord()) return;
    if (this.#target) return this.#assign(this.#target, false);
    this.#goToQuestion(1);
  }

  /** Say yes to the shown question; if it is about another cell, look at that first. */
  #acceptAsked() {
    const { state } = this.#model;
    const question = shownQuestion(state, this.#cursor);
    const place = placeOf(state, this.#cursor);
    if (question && hasNoAnswer(question) && question.page === this.#cursor.page) {
      return this.#say("There is nothing to confirm here: mark the values of a record.");
    }
    if (question?.attribute === null && question.page === this.#cursor.page) return this.#acceptAll();
    const asked = place && isOpen(state, this.#cursor, place) ? place : question;
    if (!asked) return;
    if (!place || !isSamePlace(asked, place)) return this.#goTo(asked);
    const cell = cellOf(state, place);
    if (isSaid(cell)) this.#dismiss(place);
    else if (cell.state === "empty") this.#sayValues(`${place.attribute} is absent here`, place, []);
    else if (!this.#sayValues(`${place.attribute} confirmed`, place, cell.values)) return;
    this.#lookAtNext();
  }

  /** Say yes to the first found record that nobody spoke of. @returns {boolean} whether there was one */
  #acceptRecord() {
    const page = pageOf(this.#model.state, this.#cursor.page);
    const [found] = page ? unsaidRecords(page) : [];
    if (!page || !found) return false;
    const record = page.records.length;
    this.#change(`record ${record + 1} confirmed`, [{ kind: "values", page: page.id, record, values: found }]);
    return true;
  }

  #acceptAll() {
    const { state } = this.#model;
    const page = pageOf(state, this.#cursor.page);
    if (!page) return;
    if (isList(state, this.#cursor)) {
      this.#change(`all ${page.found_records.length} records confirmed`, withAllRecords(page));
      return;
    }
    const offered = state.attributes
      .map(({ name }) => ({ page: page.id, attribute: name, record: null }))
      .filter((place) => isOffered(cellOf(state, place)) && isOpen(state, this.#cursor, place));
    const values = offered
      .map((place) => /** @type {const} */ ([place.attribute, cellOf(state, place).values]))
      .filter(([, found]) => arePlaced(found));
    if (!values.length) return this.#say("There is no suggestion to confirm on this page.");
    this.#change(`${values.length} suggestions confirmed`, [
      { kind: "values", page: page.id, record: null, values: Object.fromEntries(values) },
    ]);
    this.#lookAtNext();
  }

  #refuse() {
    const { state } = this.#model;
    const pageBefore = this.#cursor.page;
    const here = placeOf(state, this.#cursor);
    const place = here && isOpen(state, this.#cursor, here) ? here : shownQuestion(state, this.#cursor);
    if (!place) return this.#say("There is nothing to refuse here.");
    this.#goTo(place);
    if (place.page !== pageBefore) return;
    this.#dismiss(place);
    if (place.attribute === null) return this.#say("Mark values in one more record, or in one that is not right.");
    this.#say(`Mark the right value of ${place.attribute}, or press a if it is absent here.`);
  }

  /** Ask no more about something as it is now. @param {Place | Question} place */
  #dismiss(place) {
    const { dismissed } = this.#cursor;
    this.#move({ dismissed: new Set(dismissed).add(fingerprint(this.#model.state, place)), asked: null });
    this.#model.change("answered", [], () => this.#move({ dismissed }));
  }

  #takeFound() {
    const place = placeOf(this.#model.state, this.#cursor);
    const found = place && cellOf(this.#model.state, place).finds;
    if (!place || !found) return this.#say("The wrapper finds nothing else here.");
    if (this.#sayValues(`${place.attribute} is what the wrapper finds`, place, found)) this.#lookAtNext();
  }

  #absent() {
    const place = placeOf(this.#model.state, this.#cursor);
    if (!place) return this.#say("Choose an attribute first.");
    this.#sayValues(`${place.attribute} is absent here`, place, []);
    this.#move({ record: place.record ?? 0 });
    this.#lookAtNext();
  }

  #undo() {
    this.#twins = null;
    this.#say(this.#model.undo());
  }

  // Lists

  #toggleList() {
    const { state } = this.#model;
    const page = pageOf(state, this.#cursor.page);
    if (!page) return;
    const wasList = isList(state, this.#cursor);
    const changes = wasList ? asDetail(page) : asList(page, this.#twins);
    const label = wasList ? "this page has one record" : "this page lists several records";
    if (changes.length && !this.#change(label, changes)) return;
    const lists = new Map(this.#cursor.lists).set(page.id, !wasList);
    this.#move({ exact: null, record: this.#twins ? 1 : 0, lists });
    this.#twins = null;
    this.#say(`${label[0].toUpperCase()}${label.slice(1)}.`);
    this.#render();
  }

  #newRecord() {
    const { state } = this.#model;
    const page = pageOf(state, this.#cursor.page);
    if (!page || !isList(state, this.#cursor)) return this.#say("Press l first if this page lists several records.");
    this.#move({ record: page.records.length, exact: null });
    this.#say(`The next value begins record ${page.records.length + 1}.`);
  }

  // Going about

  /** @param {Partial<Cursor>} changes */
  #move(changes) {
    this.#cursor = { ...this.#cursor, ...changes };
  }

  /** @param {Place | Question} place */
  async #goTo(place) {
    if (place.page !== this.#cursor.page) await this.#goToPage(place.page);
    const { page, attribute, record } = place;
    const exact = attribute === null || record === null ? null : { page, attribute, record };
    const asked = "kind" in place ? place : null;
    this.#move({ attribute: attribute ?? this.#cursor.attribute, exact, asked });
    this.#aim(null);
    this.#revealPlace();
    this.#render();
  }

  /** @param {number} step */
  #goToQuestion(step) {
    const question = questionAfter(this.#model.state, this.#cursor, step);
    if (question) this.#goTo(question);
    else this.#say("There is no open question.");
  }

  /** @param {number} step */
  #step(step) {
    const page = pageAfter(this.#model.state, this.#cursor, step);
    if (page) this.#goToPage(page.id);
    else this.#say(step > 0 ? "This is the last page." : "This is the first page.");
  }

  /** @param {number} id */
  async #goToPage(id) {
    const page = pageOf(this.#model.state, id);
    const record = Math.max(0, (page?.records.length ?? 0) - 1);
    this.#move({ page: id, exact: null, asked: null, record });
    history.replaceState(null, "", `?page=${id}`);
    await this.#showPage();
  }

  async #showPage() {
    const page = pageOf(this.#model.state, this.#cursor.page);
    if (!page) return;
    this.#version = page.version;
    this.#target = null;
    this.#pointedLast = null;
    this.#twins = null;
    this.#render();
    this.#part("page").setAttribute("aria-busy", "true");
    try {
      if (!(await this.#frame.show(page, this.#isRemote))) return;
    } catch (error) {
      this.#say(/** @type {Error} */ (error).message);
    }
    this.#part("page").removeAttribute("aria-busy");
    this.#lookAtNext();
  }

  /** Turn to the next cell of this page that asks for something; without one, stay. */
  #lookAtNext() {
    const { state } = this.#model;
    const next = nextOpen(state, this.#cursor);
    if (next && next.page === this.#cursor.page) {
      this.#goTo(next);
      return;
    }
    const attribute = this.#cursor.attribute ?? state.attributes[0]?.name ?? null;
    this.#move({ attribute });
    this.#aim(null);
    this.#render();
  }

  /** Load pictures from the web from now on, or no more; the page is shown anew. */
  #toggleRemote() {
    this.#isRemote = !this.#isRemote;
    if (this.#isRemote) sessionStorage.setItem(REMOTE, "allowed");
    else sessionStorage.removeItem(REMOTE);
    this.#say(this.#isRemote ? "Pictures are loaded from the web." : "Nothing is loaded from the web.");
    this.#showPage();
  }

  #revealPlace() {
    const place = placeOf(this.#model.state, this.#cursor);
    const pick = place && cellOf(this.#model.state, place).values[0]?.pick;
    const element = pick && this.#frame.element(pick.element);
    if (element) this.#frame.reveal(element);
  }

  // With others

  /** @param {{revision: string, author: string | null}} news */
  async #hear({ revision, author }) {
    if (!this.#model.isNews(revision)) return;
    if (author !== null && author !== this.#me) this.#bars.meet(author);
    await this.#model.refresh().catch(() => this.#say("What others changed could not be fetched yet."));
  }

  async #finish() {
    const button = /** @type {HTMLButtonElement} */ (this.#part("finish"));
    button.disabled = true;
    this.#say("Learning from all pages …");
    try {
      await this.#model.settled();
      location.href = (await this.#api.finish()).url;
    } catch (error) {
      this.#say(/** @type {Error} */ (error).message);
      button.disabled = false;
    }
  }

  // Showing

  #close() {
    this.#chips.closeEditor();
    this.#aim(null);
    this.#move({ exact: null, asked: null });
    this.#twins = null;
    this.#part("page").focus();
    this.#render();
  }

  /** Tell what happened. @param {string} sentence */
  #say(sentence) {
    this.#bars.say(sentence);
  }

  /** Show how things are now; the page itself only if it is another version or gone. */
  #update() {
    const { state } = this.#model;
    const page = pageOf(state, this.#cursor.page);
    if (page?.version === this.#version) return this.#render();
    if (!page) return this.#goToPage(state.pages[0].id);
    this.#say("Another version of this page is shown now.");
    this.#showPage();
  }

  #render() {
    const { state } = this.#model;
    const page = pageOf(state, this.#cursor.page) ?? state.pages[0];
    this.#chooseAnew(state);
    const question = shownQuestion(state, this.#cursor);
    this.#chips.render(state.attributes, state.offers, this.#cursor.attribute);
    this.#panel.render({
      attributes: state.attributes,
      pages: state.pages,
      page,
      chosen: this.#cursor.attribute,
      isList: isList(state, this.#cursor),
      unsaidRecords: unsaidRecords(page).length,
      question,
      questions: openQuestions(state, this.#cursor).length,
      questioned: question && question.attribute !== null ? cellOf(state, /** @type {Place} */ (question)) : null,
      problem: state.problem,
      mayChange: this.#mayChange,
      cutsOf: ({ pick }) => pick && cutsOf(this.#frame.element(pick.element), pick),
    });
    this.#bars.render(this.#model, page, isList(state, this.#cursor), this.#isLookingForKnown, this.#isRemote);
    this.#bars.hint(this.#cursor.attribute ?? "", this.#target);
    this.#frame.overlay?.draw(marksOf(state, this.#cursor, (number) => this.#frame.element(number), this.#palette));
    this.#drawOutline();
  }

  /** Choose the attribute that stands where the chosen one was, if that is gone. @param {State} state */
  #chooseAnew({ attributes }) {
    const place = attributes.findIndex(({ name }) => name === this.#cursor.attribute);
    if (place < 0) {
      const name = (attributes[this.#chosenPlace] ?? attributes[0])?.name ?? null;
      this.#move({ attribute: name, exact: null, asked: null });
    } else this.#chosenPlace = place;
  }

  #drawOutline() {
    const elements = (/** @type {number} */ number) => this.#frame.element(number);
    this.#frame.overlay?.point(outlineOf(this.#model.state, this.#cursor, this.#target, elements, this.#palette));
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
