// The bars above and below the page: where the person is, what is outlined, what happened, what stands in the way.

import { cutsOf, describe, textOf } from "../archived/picking.js";
import { fill, make, percent, shortened } from "./dom.js";
import { helpOfKeys } from "./keys.js";

/** @import {Model} from "./model.js" */
/** @import {Page, State, Target} from "./types.js" */

/** Characters of a text that the bar at the bottom shows. */
const LONGEST_TEXT = 120;

/** Milliseconds after which another person who did nothing counts as gone. */
const PRESENCE = 5 * 60 * 1000;

export class Bars {
  #part;
  /** @type {Map<string, number>} others, and when they last did something */
  #others = new Map();

  /** @param {(name: string) => HTMLElement} part finds a part of the annotator */
  constructor(part) {
    this.#part = part;
  }

  /** Tell what happened. @param {string} sentence */
  say(sentence) {
    this.#part("status").textContent = sentence;
  }

  /** Note that another person is at work. @param {string} name */
  meet(name) {
    this.#others.set(name, Date.now());
  }

  /**
   * @param {Model} model
   * @param {Page} page the page that is shown
   * @param {boolean} isList
   * @param {boolean} isLookingForKnown
   * @param {boolean} isRemote whether pictures are loaded from the web
   */
  render(model, page, isList, isLookingForKnown, isRemote) {
    const { state } = model;
    this.#part("position").textContent = positionOf(state, page);
    this.#part("coverage").textContent = state.coverage.sentence;
    this.#part("coverage-below").textContent = state.coverage.sentence;
    this.#part("finish").classList.toggle("primary", state.coverage.is_enough);
    this.#part("empty").hidden = state.attributes.length > 0;
    this.#part("list").setAttribute("aria-pressed", String(isList));
    this.#part("remote").setAttribute("aria-pressed", String(isRemote));
    /** @type {HTMLButtonElement} */ (this.#part("undo")).disabled = !model.canUndo;
    this.#part("busy").textContent = busyText(model) || (isLookingForKnown ? "looking for known values …" : "");
    this.#part("others").textContent = this.#othersText();
    this.#renderProblem(model);
  }

  /**
   * Tell what is outlined, and which attribute's value it would be.
   * @param {string} attribute
   * @param {Target | null} target
   * @param {boolean} isWalkedTo whether Enter assigns it
   */
  hint(attribute, target, isWalkedTo) {
    this.#part("panel").classList.toggle("waits", isWalkedTo);
    if (!target) return fill(this.#part("hint"), make("b", { textContent: attribute }));
    const { element, pick } = target;
    const cuts = cutsOf(element, pick);
    fill(
      this.#part("hint"),
      isWalkedTo && make("span", { class: "walked" }, make("kbd", { textContent: "Enter" }), " assigns "),
      make("b", { textContent: attribute && `${attribute}: ` }),
      cuts && make("del", { textContent: cuts.before }),
      make("span", { textContent: shortened(textOf(element, pick), LONGEST_TEXT) || "no text" }),
      cuts && make("del", { textContent: cuts.after }),
      make("span", { class: "faint", textContent: ` (${describe(element, pick)})` }),
    );
  }

  /** Show all keys. */
  help() {
    const dialog = /** @type {HTMLDialogElement} */ (this.#part("keys"));
    if (!dialog.querySelector("dl")) dialog.append(helpOfKeys());
    dialog.showModal();
  }

  /** On a small screen, show the whole panel or only its question. */
  toggleDrawer() {
    const isOpen = this.#part("panel").classList.toggle("open");
    this.#part("drawer").setAttribute("aria-expanded", String(isOpen));
  }

  #othersText() {
    const present = [...this.#others].filter(([, time]) => Date.now() - time < PRESENCE).map(([name]) => name);
    return present.length ? `${present.join(", ")} ${present.length > 1 ? "are" : "is"} here too` : "";
  }

  /** @param {Model} model */
  #renderProblem(model) {
    const { problem } = model;
    const part = this.#part("problem");
    part.hidden = !problem;
    if (!problem) return;
    fill(
      part,
      make("span", { textContent: problem.sentence }),
      problem.mustSignIn && make("a", { href: "/sign-in", target: "_blank", textContent: "Sign in again" }),
      problem.canRetry && button("retry", "Retry", () => model.retry()),
      problem.canInsist && button("insist", "Use mine", () => model.insist()),
      !problem.canRetry && button("dismiss", "Leave it", () => model.dismiss()),
    );
  }
}

/** @param {State} state @param {Page} page */
function positionOf({ coverage, pages }, page) {
  const [now, then] = [coverage.covered, Math.max(coverage.covered, page.covered)].map(percent);
  const gain = page.is_settled || now === then ? "" : ` → ${then}`;
  return `page ${page.number} of ${pages.length}, seen ${now}${gain}`;
}

/** @param {Model} model */
function busyText({ waiting, problem }) {
  if (!waiting || problem?.canRetry) return "";
  return waiting > 1 ? `learning … (${waiting})` : "learning …";
}

/** @param {string} id @param {string} text @param {() => void} onclick */
const button = (id, text, onclick) => make("button", { id, type: "button", textContent: text, onclick });
