// The panel at the side: what is found on all sample pages, one question, the values of this page, the pages.

import { colourOf } from "./chips.js";
import { fill, make, partsOf, percent, shortened } from "./dom.js";
import { digitOf } from "./keys.js";
import { hasNoAnswer } from "./state.js";

/** @import {Attribute, Cell, Page, Place, Question, Value} from "./types.js" */

/** Characters of a value that a row of the panel shows. */
const LONGEST_VALUE = 80;

/**
 * @typedef {object} PanelView
 * @property {Attribute[]} attributes
 * @property {Page[]} pages
 * @property {Page} page the page that is shown
 * @property {string | null} chosen
 * @property {boolean} isList
 * @property {number} unsaidRecords how many found records nobody spoke of
 * @property {Question | null} question
 * @property {number} questions how many there are
 * @property {Cell | null} questioned
 * @property {string | null} problem
 * @property {boolean} mayChange
 * @property {(value: Value) => {before: string, after: string} | null} cutsOf
 */

/**
 * @typedef {object} PanelActions
 * @property {(place: Place) => void} goTo
 * @property {(page: number) => void} goToPage
 * @property {() => void} accept
 * @property {() => void} refuse
 * @property {() => void} takeFound
 * @property {() => void} acceptAll
 * @property {() => void} nextQuestion
 */

export class Panel {
  #overview;
  #question;
  #values;
  #pages;
  #actions;

  /** @param {ParentNode} root @param {PanelActions} actions */
  constructor(root, actions) {
    const part = partsOf(root);
    this.#overview = part("overview");
    this.#question = part("question");
    this.#values = part("values");
    this.#pages = part("pages");
    this.#actions = actions;
  }

  /** @param {PanelView} view */
  render(view) {
    fill(this.#overview, ...this.#overviewOf(view));
    fill(this.#question, ...(view.question ? this.#questionOf(view, view.question) : [noQuestion(view)]));
    fill(this.#values, ...(view.isList ? this.#recordsOf(view) : this.#cellsOf(view)));
    fill(this.#pages, ...view.pages.map((page) => this.#pageOf(page, view)));
  }

  /** @param {PanelView} view */
  #overviewOf({ attributes, problem }) {
    const rows = attributes.map((attribute, place) => make("tr", { class: attribute.remark ? "remarked" : "" },
      make("th", { scope: "row" }, badge(place), attribute.name),
      make("td", { class: "number", textContent: `${attribute.found}/${attribute.pages}` }),
      make("td", { textContent: attribute.remark ?? (attribute.found ? "ok" : "") })));
    return [
      problem && make("p", { class: "notice warn", textContent: problem }),
      rows.length
        ? make("table", {}, make("tbody", {}, ...rows))
        : make("p", { class: "faint", textContent: "What is found on each page will stand here." }),
    ];
  }

  /** @param {PanelView} view @param {Question} question */
  #questionOf({ page, questions, questioned, mayChange, cutsOf }, question) {
    const isHere = question.page === page.id;
    const cut = isHere ? (questioned?.values ?? []).filter(cutsOf) : [];
    return [
      make("h3", { class: "faint", textContent: questions > 1 ? `Question, one of ${questions}` : "Question" }),
      make("p", { textContent: question.text }),
      ...cut.map((value) => valueLine(value, cutsOf(value))),
      make("div", { class: "actions" }, ...this.#answers(question, questioned, isHere, mayChange)),
    ];
  }

  /** @param {Question} question @param {Cell | null} cell @param {boolean} isHere @param {boolean} mayChange */
  #answers(question, cell, isHere, mayChange) {
    const next = answer("next-question", "j", isHere ? "next" : "show page", this.#actions.nextQuestion);
    if (!isHere || !mayChange || hasNoAnswer(question)) return [next];
    return [
      answer("accept", "Enter", cell?.differs ? "keep what was said" : "yes", this.#actions.accept, "primary"),
      cell?.differs && answer("take-found", "u", "use what was found", this.#actions.takeFound),
      answer("refuse", "x", "no", this.#actions.refuse),
      next,
    ];
  }

  /** @param {PanelView} view */
  #cellsOf({ attributes, page, chosen, mayChange, cutsOf }) {
    const offered = attributes.filter(({ name }) => ["suggested", "known"].includes(page.cells[name]?.state));
    return [
      make("h3", { textContent: `Values of page ${page.number}` }),
      make("table", {}, make("tbody", {}, ...attributes.map(({ name }, place) => {
        const at = { page: page.id, attribute: name, record: null };
        return this.#row(at, place, page.cells[name], name === chosen, cutsOf);
      }))),
      mayChange && offered.length > 1 &&
        answer("accept-all", "Shift Enter", `all ${offered.length} are right`, this.#actions.acceptAll),
    ];
  }

  /** @param {PanelView} view */
  #recordsOf({ attributes, page, mayChange, unsaidRecords, cutsOf }) {
    const counted = `${page.found_records.length} records found, ${page.records.length} marked`;
    return [
      make("h3", { textContent: `Records of page ${page.number}` }),
      make("p", { class: "faint", textContent: counted }),
      ...page.records.map((cells, record) => make("table", {},
        make("caption", { textContent: `Record ${record + 1}` }),
        make("tbody", {}, ...attributes.flatMap(({ name }, place) => (cells[name]
          ? [this.#row({ page: page.id, attribute: name, record }, place, cells[name], false, cutsOf)]
          : []))))),
      mayChange && unsaidRecords > 0 &&
        answer("accept-all", "Shift Enter", `all ${page.found_records.length} are right`, this.#actions.acceptAll),
    ];
  }

  /**
   * @param {Place} at
   * @param {number} place place of the attribute
   * @param {Cell | undefined} cell
   * @param {boolean} isChosen
   * @param {PanelView["cutsOf"]} cutsOf
   */
  #row(at, place, cell, isChosen, cutsOf) {
    const id = ["value", ...(at.record === null ? [] : [at.record + 1]), place + 1].join("-");
    const onclick = () => this.#actions.goTo(at);
    const values = (cell?.values ?? []).map((value) => valueLine(value, cutsOf(value)));
    return make("tr", { class: isChosen ? "chosen" : "" },
      make("th", { scope: "row" },
        make("button", { id, class: "quiet", type: "button", onclick }, badge(place), at.attribute)),
      make("td", {},
        ...values,
        make("span", { class: "faint", textContent: values.length ? sourceOf(cell) : nothingIn(cell) })));
  }

  /** @param {Page} each @param {PanelView} view */
  #pageOf(each, { page }) {
    return make("li", {},
      make("button", {
        id: `page-${each.number}`, class: "quiet", type: "button", title: each.url,
        "aria-current": each.id === page.id ? "page" : null, onclick: () => this.#actions.goToPage(each.id),
      },
        each.is_settled
          ? make("span", { class: "tick", role: "img", "aria-label": "settled", textContent: "✓" })
          : make("span", { class: "tick" }),
        make("span", { class: "number", textContent: String(each.number) }), " ",
        make("span", { class: "title", textContent: shortened(each.title || each.url, LONGEST_VALUE) })));
  }
}

/** @param {PanelView} view */
const noQuestion = ({ attributes }) => make("p", {
  class: "faint",
  textContent: attributes.length ? "No open question." : "Questions will stand here, one at a time.",
});

/** @param {number} place */
const badge = (place) =>
  make("span", { class: `digit colour-${colourOf(place)}`, "aria-hidden": true, textContent: digitOf(place) });

/**
 * @param {string} id
 * @param {string} key
 * @param {string} text
 * @param {() => void} onclick
 * @param {string} [kind]
 */
const answer = (id, key, text, onclick, kind = "") =>
  make("button", { id: `answer-${id}`, class: kind, type: "button", onclick },
    make("kbd", { "aria-hidden": true, textContent: key }), text);

/** @param {Value} value @param {{before: string, after: string} | null} cuts */
const valueLine = ({ text }, cuts) => make("p", { class: "value" },
  cuts?.before && make("del", { title: "cut off", textContent: cuts.before }),
  make("q", { textContent: shortened(text, LONGEST_VALUE) }),
  cuts?.after && make("del", { title: "cut off", textContent: cuts.after }));

/** @param {Cell | undefined} cell */
function nothingIn(cell) {
  if (cell?.state === "absent") return `absent${cell.source ? `, says ${cell.source}` : ""}`;
  return cell?.state === "empty" ? "nothing found" : "–";
}

/** @param {Cell | undefined} cell */
function sourceOf(cell) {
  const confidence = cell?.values[0]?.confidence;
  const doubt = confidence === null || confidence === undefined ? "" : `, ${percent(confidence)} sure`;
  return cell?.source ? `${cell.source}${cell.state === "said" ? "" : doubt}` : "";
}
