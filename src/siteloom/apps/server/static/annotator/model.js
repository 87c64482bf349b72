// The state as the person sees it: what the server said last, with the changes on top that are still on their way.

import { Refused } from "../siteloom.js";
import { applied, doneByOthers, inverse, isOlder, pageOf, seenAfter, unplacedIn, withSeen } from "./state.js";

/** @import {Api} from "./api.js" */
/** @import {Change, State} from "./types.js" */

/** Seconds until a failed request is sent again; a restart of the server takes about that long. */
const RETRY_SECONDS = [1, 2, 4, 8, 15];

/**
 * What stands in the way of the changes: `canRetry` if they wait for the server, `mustSignIn` if for the person to
 * sign in again, `canInsist` if another person was faster and one may still use one's own.
 * @typedef {{sentence: string, canRetry: boolean, mustSignIn: boolean, canInsist: boolean}} Problem
 */

/**
 * What a person did, and how to take it back: the changes that do so, those of them that are about what the server
 * has kept already, and what else is then to be done.
 * @typedef {{label: string, changes: Change[], inverses: Change[], kept: Change[], onUndo: () => void}} Step
 */

/**
 * A change that the server has not answered yet: part of what step, with its inverses, or of undoing which.
 * @typedef {{change: Change, step: Step | null, inverses: Change[], undoes: Step | null}} Waiting
 */

/**
 * @typedef {object} ModelListeners
 * @property {() => void} onChange
 * @property {(sentence: string) => void} onMessage
 * @property {(changes: Change[]) => void} onRefuse another person was faster, so these were not kept
 */

export class Model {
  #api;
  #me;
  #listeners;
  /** @type {State} */
  #server;
  /** @type {Waiting[]} oldest first */
  #pending = [];
  /** @type {Step[]} */
  #done = [];
  /** @type {Change[]} */
  #refused = [];
  /** @type {Problem | null} */
  #problem = null;
  #isSending = false;
  #failures = 0;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;

  /**
   * @param {Api} api
   * @param {State} state
   * @param {string} me name of the person at this browser
   * @param {ModelListeners} listeners
   */
  constructor(api, state, me, listeners) {
    this.#api = api;
    this.#server = state;
    this.#me = me;
    this.#listeners = listeners;
  }

  /** @returns {State} */
  get state() {
    return this.#pending.reduce((state, { change }) => applied(state, change), this.#server);
  }

  get problem() {
    return this.#problem;
  }

  /** How many changes the server has not answered yet. */
  get waiting() {
    return this.#pending.length;
  }

  get canUndo() {
    return this.#done.length > 0;
  }

  /**
   * Take in changes at once, and send them one after the other; if one is not kept, none of them is.
   * @param {string} label what is done, for the person
   * @param {Change[]} changes
   * @param {() => void} [onUndo]
   */
  change(label, changes, onUndo = () => {}) {
    /** @type {Step} */
    const step = { label, changes: [], inverses: [], kept: [], onUndo };
    if (!this.#problem?.canRetry && !this.#problem?.canInsist) this.#problem = null; // who goes on has read it
    for (const each of changes) {
      const change = withSeen(this.state, each);
      const inverses = inverse(this.state, change);
      step.changes.push(change);
      step.inverses.unshift(...inverses);
      this.#pending.push({ change, step, inverses, undoes: null });
    }
    this.#done.push(step);
    this.#advance();
  }

  /** Take the last change back. @returns {string} what came of it, for the person */
  undo() {
    const last = this.#done.pop();
    if (!last) return "There is nothing to undo.";
    const lost = unplacedIn(last.inverses);
    if (lost) return `This cannot be undone: it is not known where “${lost.text}” stands on the page.`;
    for (const change of last.inverses) this.#pending.push(takingBack(this.state, change, last));
    last.onUndo();
    this.#advance();
    return `Undone: ${last.label}.`;
  }

  /** Take in a state that was asked for, unless a newer one is here. @param {State} state */
  receive(state) {
    if (isOlder(state.revision, this.#server.revision)) return;
    for (const sentence of doneByOthers(this.#server, state, this.#me)) this.#listeners.onMessage(`${sentence}.`);
    this.#server = state;
    this.#listeners.onChange();
  }

  /** Whether the server has something newer than what is here. @param {string} revision */
  isNews(revision) {
    return isOlder(this.#server.revision, revision) && !this.#isSending;
  }

  /** Fetch what others changed. */
  async refresh() {
    this.receive(await this.#api.workbench());
  }

  /** Send again now what could not be sent. */
  retry() {
    clearTimeout(this.#timer);
    this.#problem = null;
    this.#advance();
  }

  /** Say again what another person's change stood against. */
  insist() {
    const changes = this.#refused;
    this.dismiss();
    if (changes.length) this.change("use mine", changes);
  }

  /** Leave things as they are. */
  dismiss() {
    this.#refused = [];
    this.#problem = null;
    this.#listeners.onChange();
  }

  /** When all changes are answered. */
  async settled() {
    while (this.#pending.length) await new Promise((resolve) => setTimeout(resolve, 50));
  }

  async #advance() {
    this.#listeners.onChange();
    if (this.#isSending) return;
    this.#isSending = true;
    while (this.#pending.length && (await this.#sendFirst())) this.#listeners.onChange();
    this.#isSending = false;
    this.#listeners.onChange();
  }

  /** Send the oldest change. @returns {Promise<boolean>} whether to go on */
  async #sendFirst() {
    const [first] = this.#pending;
    try {
      const state = await this.#api.change(first.change);
      this.#pending.shift();
      first.step?.kept.unshift(...first.inverses);
      this.#failures = 0;
      if (this.#problem?.canRetry) this.#problem = null;
      this.receive(state);
      this.#markSeen(first.change);
      return true;
    } catch (error) {
      return error instanceof Refused && error.status < 500 && !isPassing(error)
        ? this.#giveUp(first, error)
        : this.#wait(error);
    }
  }

  /** Later changes of the same cells have seen this one. @param {Change} change */
  #markSeen(change) {
    this.#pending = this.#pending.map((waiting) => (
      { ...waiting, change: seenAfter(this.#server, change, waiting.change) }));
  }

  /**
   * Leave out a change that the server refused, with all that belongs to it: what was kept of the same step is taken
   * back, for half of it may mean something that nobody said.
   * @param {Waiting} first
   * @param {Refused} error
   */
  #giveUp(first, error) {
    const step = first.step ?? first.undoes;
    const isOfStep = (/** @type {Waiting} */ each) =>
      each === first || (step !== null && [each.step, each.undoes].includes(step));
    const refused = first.step ? first.step.changes : this.#pending.filter(isOfStep).map(({ change }) => change);
    this.#pending = this.#pending.filter((each) => !isOfStep(each));
    this.#done = this.#done.filter((each) => each !== step);
    if (error.body?.state) this.receive(error.body.state);
    const kept = first.step?.kept ?? [];
    const isHalf = unplacedIn(kept) !== undefined;
    if (!isHalf) this.#pending.unshift(...kept.map((change) => takingBack(this.#server, change, null)));
    const isConflict = error.status === 409;
    const canInsist = isConflict && refused.every((change) => isOfShownVersion(this.#server, change));
    this.#refused = canInsist ? refused : [];
    this.#problem = { sentence: error.message, canRetry: false, mustSignIn: false, canInsist };
    this.#listeners.onMessage(isHalf ? "Only part of that was kept: look at the page." : "That was not kept.");
    if (isConflict) this.#listeners.onRefuse(refused);
    return true;
  }

  /** @param {unknown} error */
  #wait(error) {
    const seconds = RETRY_SECONDS[Math.min(this.#failures, RETRY_SECONDS.length - 1)];
    this.#failures += 1;
    const mustSignIn = error instanceof Refused && isAboutAccount(error);
    const isSignedOut = error instanceof Refused && error.status === 401;
    const reason = isSignedOut ? "You are signed out." : reasonOf(error);
    const sentence = `${reason} Nothing is lost: it is sent again in ${seconds} s.`;
    this.#problem = { sentence, canRetry: true, mustSignIn, canInsist: false };
    this.#timer = setTimeout(() => this.retry(), seconds * 1000);
    return false;
  }
}

/**
 * Whether a refusal will pass: the person has to sign in again, or the store was busy. A conflict with another
 * person comes with the state.
 * @param {Refused} error
 */
const isPassing = (error) =>
  isAboutAccount(error) || error.status === 429 || (error.status === 409 && !error.body?.state);

/** @param {Refused} error */
const isAboutAccount = ({ status }) => status === 401 || status === 403;

/** @param {unknown} error */
const reasonOf = (error) => (error instanceof Refused ? error.message : "The server cannot be reached.");

/**
 * Whether a change is about the version of its page that is shown: on another, its picks mean something else.
 * @param {State} state
 * @param {Change} change
 */
const isOfShownVersion = (state, change) =>
  !("page" in change) || change.version === pageOf(state, change.page)?.version;

/** @param {State} state @param {Change} change @param {Step | null} undoes @returns {Waiting} */
const takingBack = (state, change, undoes) => (
  { change: withSeen(state, change), step: null, inverses: [], undoes });
