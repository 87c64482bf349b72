// The state as the person sees it: what the server said last, with the changes on top that are still on their way.

import { Refused } from "../siteloom.js";
import { applied, doneByOthers, inverse, isOlder, withSeen } from "./state.js";

/** @import {Api} from "./api.js" */
/** @import {Change, State} from "./types.js" */

/** Seconds until a failed request is sent again; a restart of the server takes about that long. */
const RETRY_SECONDS = [1, 2, 4, 8, 15];

/**
 * What stands in the way of the changes: `canRetry` if they wait for the server, `canInsist` if another person
 * was faster and one may still use one's own.
 * @typedef {{sentence: string, canRetry: boolean, canInsist: boolean}} Problem
 */

/**
 * What a person did, the changes that take it back, and what else is then to be done.
 * @typedef {{label: string, inverses: Change[], onUndo: () => void}} Step
 */

export class Model {
  #api;
  #me;
  #onChange;
  #onMessage;
  /** @type {State} */
  #server;
  /** @type {{change: Change, step: Step | null}[]} changes not yet answered, oldest first */
  #pending = [];
  /** @type {Step[]} */
  #done = [];
  /** @type {Change | null} */
  #refused = null;
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
   * @param {() => void} onChange
   * @param {(sentence: string) => void} onMessage
   */
  constructor(api, state, me, onChange, onMessage) {
    this.#api = api;
    this.#server = state;
    this.#me = me;
    this.#onChange = onChange;
    this.#onMessage = onMessage;
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
   * Take in changes at once, and send them one after the other.
   * @param {string} label what is done, for the person
   * @param {Change[]} changes
   * @param {() => void} [onUndo]
   */
  change(label, changes, onUndo = () => {}) {
    /** @type {Step} */
    const step = { label, inverses: [], onUndo };
    for (const change of changes) {
      step.inverses.unshift(...inverse(this.state, change));
      this.#enqueue(change, step);
    }
    this.#done.push(step);
    this.#advance();
  }

  /** Take the last change back. @returns {string | null} what it was */
  undo() {
    const last = this.#done.pop();
    if (!last) return null;
    for (const change of last.inverses) this.#enqueue(change, null);
    last.onUndo();
    this.#advance();
    return last.label;
  }

  /** Take in a state that was asked for, unless a newer one is here. @param {State} state */
  receive(state) {
    if (isOlder(state.revision, this.#server.revision)) return;
    for (const sentence of doneByOthers(this.#server, state, this.#me)) this.#onMessage(`${sentence}.`);
    this.#server = state;
    this.#onChange();
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
    const change = this.#refused;
    this.dismiss();
    if (change) this.change("use mine", [change]);
  }

  /** Leave things as they are. */
  dismiss() {
    this.#refused = null;
    this.#problem = null;
    this.#onChange();
  }

  /** When all changes are answered. */
  async settled() {
    while (this.#pending.length) await new Promise((resolve) => setTimeout(resolve, 50));
  }

  /** @param {Change} change @param {Step | null} step */
  #enqueue(change, step) {
    this.#pending.push({ change: withSeen(this.state, change), step });
  }

  async #advance() {
    this.#onChange();
    if (this.#isSending) return;
    this.#isSending = true;
    while (this.#pending.length && (await this.#sendFirst())) this.#onChange();
    this.#isSending = false;
    this.#onChange();
  }

  /** Send the oldest change. @returns {Promise<boolean>} whether to go on */
  async #sendFirst() {
    const [{ change, step }] = this.#pending;
    try {
      const state = await this.#api.change(change);
      this.#pending.shift();
      this.#failures = 0;
      if (!this.#refused) this.#problem = null;
      this.receive(state);
      this.#markSeen(change);
      return true;
    } catch (error) {
      return error instanceof Refused && error.status < 500 && !isPassing(error)
        ? this.#giveUp(change, step, error)
        : this.#wait(error);
    }
  }

  /** Later changes of the same cells have seen this one. @param {Change} change */
  #markSeen(change) {
    this.#pending = this.#pending.map(({ change: later, step }) => (
      { change: seenAfter(this.#server, change, later), step }));
  }

  /** @param {Change} change @param {Step | null} step @param {Refused} error */
  #giveUp(change, step, error) {
    this.#pending.shift();
    this.#done = this.#done.filter((each) => each !== step);
    const isConflict = error.status === 409;
    this.#refused = isConflict ? change : null;
    this.#problem = { sentence: error.message, canRetry: false, canInsist: isConflict };
    this.#onMessage("That was not kept.");
    if (error.body?.state) this.receive(error.body.state);
    return true;
  }

  /** @param {unknown} error */
  #wait(error) {
    const seconds = RETRY_SECONDS[Math.min(this.#failures, RETRY_SECONDS.length - 1)];
    this.#failures += 1;
    const reason = error instanceof Refused ? error.message : "The server cannot be reached.";
    const sentence = `${reason} Nothing is lost: it is sent again in ${seconds} s.`;
    this.#problem = { sentence, canRetry: true, canInsist: false };
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
  error.status === 401 || error.status === 429 || (error.status === 409 && !error.body?.state);

/**
 * A change that waits, once another before it was answered: what that one did to its cells has been seen.
 * @param {State} state
 * @param {Change} before
 * @param {Change} later
 * @returns {Change}
 */
function seenAfter(state, before, later) {
  if (!("page" in before && "page" in later) || later.page !== before.page) return later;
  const seen = withSeen(state, later);
  if (seen.kind !== "values" || later.kind !== "values" || before.kind === "records") return seen;
  const isSameRecord = later.record === before.record;
  return isSameRecord ? { ...later, seen: { ...later.seen, ...common(seen.seen ?? {}, before.values) } } : later;
}

/**
 * The entries of an object whose keys another has.
 * @param {Record<string, number>} from
 * @param {object} keys
 */
const common = (from, keys) => Object.fromEntries(Object.entries(from).filter(([key]) => key in keys));
