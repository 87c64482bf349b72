// The panel at the side: what is found on all sample pages, one question, the values of this page, the pages.

import { colourOf } from "../archived/palette.js";
import { fill, make, partsOf, percent, shortened } from "./dom.js";
import { digitOf } from "./keys.js";
import { hasNoAnswer } from "./state.js";

/** @import {Attribute, Cell, Page, Place, Question, Value} from "./types.js" */

/** Characters of a value that a row of the panel shows. */
const LONGEST_VALUE = 80;

/** Values of a list page that the overview of an attribute shows. */
const MOST_VALUES = 3;

/** Kinds of questions in which something may be wrong, the worst first; all others only wait to be confirmed. */
const DOUBTS = ["differs", "empty", "doubtful"];

/**
 * @typedef {object} PanelView
 * @property {Attribute[]} attributes
 * @property {Page[]} pages
 * @property {Page} page the page that is shown
 * @property {string | null} chosen
 * @property {boolean} isList
 * @property {Record<string, Value[]>[]} unsaidRecords found records that nobody spoke of
 * @property {number} offers how many suggestions of the page wait to be confirmed
 * @property {string | null} advice what to do on the page before anything else is asked
 * @property {Question | null} question
 * @property {boolean} isAtCursor whether the question is about what the person looks at
 * @property {Question[]} questions all there are
 * @property {Cell | null} questioned
 * @property {(place: Place) => boolean} isRefused whether what is found there was refused
 * @property {string | null} unnamed the person who need not be named, for there is no other
 * @property {string | null} problem
 * @property {boolean} mayChange
 * @property {(value: Value) => {before: string, after: string} | null} cutsOf
 */

/**
 * @typedef {object} PanelActions
 * @property {(place: Place | Question) => void} goTo
 * @property {(page: number) => void} goToPage
 * @property {() => void} accept
 * @property {() => void} sayAbsent
 * @property {() => void} refuse
 * @property {() => void} takeFound
 * @property {() => void} acceptAll
 * @property {() => void} nextQuestion
 */

export class Panel {
  #root;
  #drawer;
  #overview;
  #question;
  #values;
  #pages;
  #actions;
  /** @type {PanelView | null} what is shown */
  #view = null;
  /** @type {string | null} name of the attribute whose values on all pages are shown */
  #opened = null;

  /** @param {ParentNode} root @param {PanelActions} actions */
  constructor(root, actions) {
    const part = partsOf(root);
    this.#root = part("panel");
    this.#drawer = part("drawer");
    this.#overview = part("overview");
    this.#question = part("question");
    this.#values = part("values");
    this.#pages = part("pages");
    this.#actions = actions;
  }

  /** @param {PanelView} view */
  render(view) {
    this.#view = view;
    fill(this.#overview, ...this.#overviewOf(view));
    fill(this.#question, ...this.#promptOf(view));
    fill(this.#values, ...(view.isList ? this.#recordsOf(view) : this.#cellsOf(view)));
    fill(this.#pages, ...view.pages.map((page) => this.#pageOf(page, view)));
  }

  /**
   * Bring all values that wait to be confirmed into sight.
   * @returns {boolean} whether their end was in sight already, so that one who confirms them has seen them
   */
  showOffers() {
    const button = this.#values.querySelector("#answer-accept-all") ?? this.#values;
    const isClosed = !button.getClientRects().length;
    if (isClosed) {
      this.#root.classList.add("open");
      this.#drawer.setAttribute("aria-expanded", "true");
    }
    const [{ top, bottom }, panel] = [button, this.#root].map((each) => each.getBoundingClientRect());
    const middle = (top + bottom) / 2; // edges need not meet to the pixel
    const isSeen = !isClosed && middle > panel.top && middle < panel.bottom;
    if (!isSeen) button.scrollIntoView({ block: "end" });
    return isSeen;
  }

  /** @param {PanelView} view */
  #overviewOf(view) {
    const { attributes, problem } = view;
    const rows = attributes.flatMap((attribute, place) => [
      this.#overviewRow(view, attribute, place),
      attribute.name === this.#opened && this.#openedRow(view, attribute),
    ]);
    return [
      problem && make("p", { class: "notice warn", textContent: problem }),
      rows.length
        ? make("table", {}, make("tbody", {}, ...rows))
        : make("p", { class: "faint", textContent: "What is found on each page will stand here." }),
    ];
  }

  /** @param {PanelView} view @param {Attribute} attribute @param {number} place */
  #overviewRow({ questions }, { name, found, pages, remark }, place) {
    const isOpened = name === this.#opened;
    const [doubt] = doubtsOf(questions, name);
    const told = remark ?? (found ? "ok" : "");
    const toggle = () => {
      this.#opened = isOpened ? null : name;
      if (this.#view) this.render(this.#view);
    };
    return make("tr", { class: remark ? "remarked" : "" },
      make("th", { scope: "row" }, make("button", {
        id: `overview-${place + 1}`, class: "quiet", type: "button", onclick: toggle, "aria-expanded": String(isOpened),
        title: "its values on all sample pages, and how they are found",
      }, badge(place), name)),
      make("td", { class: "number", textContent: `${found}/${pages}` }),
      make("td", {}, doubt && remark
        ? make("button", {
          id: `remark-${place + 1}`, class: "quiet", type: "button", textContent: told, title: doubt.text,
          onclick: () => this.#actions.goTo(doubt),
        })
        : told));
  }

  /**
   * The values of an attribute on all sample pages, doubtful ones first.
   * @param {PanelView} view
   * @param {Attribute} attribute
   */
  #openedRow(view, { name, rule }) {
    const doubts = new Map(doubtsOf(view.questions, name).map((question) => [question.page, question]));
    const isDoubtful = (/** @type {Page} */ { id }) => doubts.has(id);
    const pages = [...view.pages.filter(isDoubtful), ...view.pages.filter((page) => !isDoubtful(page))];
    return make("tr", { class: "opened" }, make("td", { colSpan: 3 },
      rule && make("p", {}, make("span", { class: "faint", textContent: "How it is found: " }), rule),
      make("ul", {}, ...pages.map((page) => make("li", {},
        make("button", {
          id: `found-${page.number}`, class: "quiet", type: "button", textContent: `page ${page.number}`,
          title: page.url,
          onclick: () => this.#actions.goTo(doubts.get(page.id) ?? { page: page.id, attribute: name, record: null }),
        }), " ",
        ...foundOn(page, name, view))))));
  }

  /** @param {PanelView} view */
  #promptOf(view) {
    const { advice, question, questions } = view;
    if (advice) {
      return [
        make("p", { class: "advice", textContent: advice }),
        make("div", { class: "actions" },
          answer("absent", "a", "there is none", this.#actions.sayAbsent),
          questions.length > 0 && answer("next-question", "j", "next question", this.#actions.nextQuestion)),
      ];
    }
    return question ? this.#questionOf(view, question) : [noQuestion(view)];
  }

  /** @param {PanelView} view @param {Question} question */
  #questionOf({ page, isAtCursor, questions, questioned, mayChange, cutsOf }, question) {
    const isHere = question.page === page.id;
    const cut = isHere ? (questioned?.values ?? []).filter(cutsOf) : [];
    return [
      make("h3", { class: "faint", textContent: countOf(questions) }),
      make("p", { textContent: question.text }),
      ...cut.map((value) => valueLine(value, cutsOf(value))),
      make("div", { class: "actions" }, ...this.#answers(question, isAtCursor, isHere, mayChange)),
    ];
  }

  /** @param {Question} question @param {boolean} isAtCursor @param {boolean} isHere @param {boolean} mayChange */
  #answers(question, isAtCursor, isHere, mayChange) {
    const next = answer("next-question", "j", "next", this.#actions.nextQuestion);
    const where = isHere ? "show it" : "show page";
    if (!isAtCursor) return [answer("show", "Enter", where, this.#actions.accept, "primary")];
    if (!mayChange || hasNoAnswer(question)) return [next];
    const isContradiction = question.kind === "differs";
    return [
      answer("accept", "Enter", isContradiction ? "keep what was said" : "yes", this.#actions.accept, "primary"),
      isContradiction
        ? answer("take-found", "u", "use what was found", this.#actions.takeFound)
        : answer("refuse", "x", "no", this.#actions.refuse),
      next,
    ];
  }

  /** @param {PanelView} view */
  #cellsOf(view) {
    const { attributes, page, chosen, mayChange, offers } = view;
    return [
      make("h3", { textContent: `Values of page ${page.number}` }),
      make("table", {}, make("tbody", {}, ...attributes.map(({ name }, place) => {
        const at = { page: page.id, attribute: name, record: null };
        return this.#row(at, place, page.cells[name], name === chosen, view);
      }))),
      mayChange && offers > 1 &&
        answer("accept-all", "Shift Enter", `all ${offers} are right`, this.#actions.acceptAll),
    ];
  }

  /** @param {PanelView} view */
  #recordsOf(view) {
    const { attributes, page, mayChange, unsaidRecords, cutsOf } = view;
    const counted = `${page.found_records.length} records found, ${page.records.length} marked`;
    const places = new Map(attributes.map(({ name }, place) => [name, place]));
    return [
      make("h3", { textContent: `Records of page ${page.number}` }),
      make("p", { class: "faint", textContent: counted }),
      ...page.records.map((cells, record) => make("table", {},
        make("caption", { textContent: `Record ${record + 1}` }),
        make("tbody", {}, ...attributes.flatMap(({ name }, place) => (cells[name]
          ? [this.#row({ page: page.id, attribute: name, record }, place, cells[name], false, view)]
          : []))))),
      ...unsaidRecords.map((found) => make("table", { class: "found" },
        make("caption", { textContent: "Found" }),
        make("tbody", {}, ...Object.entries(found).map(([name, values]) => make("tr", {},
          make("th", { scope: "row" }, badge(places.get(name) ?? 0), name),
          make("td", {}, ...values.map((value) => valueLine(value, cutsOf(value))))))))),
      mayChange && unsaidRecords.length > 0 &&
        answer("accept-all", "Shift Enter", `all ${page.found_records.length} are right`, this.#actions.acceptAll),
    ];
  }

  /**
   * @param {Place} at
   * @param {number} place place of the attribute
   * @param {Cell | undefined} cell
   * @param {boolean} isChosen
   * @param {PanelView} view
   */
  #row(at, place, cell, isChosen, { cutsOf, isRefused, unnamed }) {
    const id = ["value", ...(at.record === null ? [] : [at.record + 1]), place + 1].join("-");
    const onclick = () => this.#actions.goTo(at);
    const values = (cell?.values ?? []).map((value) => valueLine(value, cutsOf(value)));
    const isOut = isRefused(at);
    return make("tr", { class: [isChosen && "chosen", isOut && "refused"].filter(Boolean).join(" ") },
      make("th", { scope: "row" },
        make("button", { id, class: "quiet", type: "button", onclick }, badge(place), at.attribute)),
      make("td", {},
        ...values,
        make("span", { class: "faint", textContent: isOut ? "refused" : sourceOf(cell, unnamed) })));
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
const noQuestion = ({ attributes, mayChange }) => make("p", {
  class: "faint",
  textContent: attributes.length
    ? `No open question.${mayChange ? " Press n for the next page, or + for another attribute." : ""}`
    : "Questions will stand here, one at a time.",
});

/** How many questions there are: what is doubtful counts, the rest can wait. @param {Question[]} questions */
function countOf(questions) {
  const doubts = questions.filter(({ kind }) => DOUBTS.includes(kind)).length;
  const others = questions.length - doubts;
  return [
    doubts && `${doubts} ${doubts > 1 ? "doubts" : "doubt"}`,
    others && `${others} to confirm`,
  ].filter(Boolean).join(", ") || "Question";
}

/**
 * The doubts about an attribute, in the order in which the remark about it names them.
 * @param {Question[]} questions
 * @param {string} name
 */
const doubtsOf = (questions, name) =>
  DOUBTS.flatMap((doubt) => questions.filter(({ attribute, kind }) => attribute === name && kind === doubt));

/** What is found or said of an attribute on a page. @param {Page} page @param {string} name @param {PanelView} view */
function foundOn(page, name, { isRefused, unnamed }) {
  const cells = [page.cells, ...page.records].flatMap((part) => part[name] ?? []);
  if (cells.length === 1) {
    const [cell] = cells;
    const isOut = isRefused({ page: page.id, attribute: name, record: null });
    const told = isOut ? "refused" : sourceOf(cell, unnamed) || "said";
    return [valuesLine(cell.values), make("span", { class: "faint", textContent: told })];
  }
  const found = page.found_records.flatMap((record) => record[name] ?? []);
  const values = found.length ? found : cells.flatMap((cell) => cell.values);
  const count = values.length ? `${values.length} values` : "–";
  return [valuesLine(values), make("span", { class: "faint", textContent: count })];
}

/** @param {Value[]} values */
function valuesLine(values) {
  const shown = values.slice(0, MOST_VALUES).map(({ text }) => shortened(text, LONGEST_VALUE)).join(", ");
  return shown && make("span", { textContent: `${shown}${values.length > MOST_VALUES ? " …" : ""} ` });
}

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

/**
 * Where what a cell says comes from, or why it says nothing.
 * @param {Cell | undefined} cell
 * @param {string | null} unnamed
 */
function sourceOf(cell, unnamed) {
  const person = cell?.source === unnamed ? null : cell?.source;
  switch (cell?.state) {
    case "said": return person ?? "";
    case "absent": return person ? `absent, says ${person}` : "absent";
    case "empty": return "nothing found";
    case "suggested":
    case "known": {
      const confidence = cell.values[0]?.confidence ?? null;
      return confidence === null ? cell.source ?? "" : `${cell.source}, ${percent(confidence)} sure`;
    }
    default: return "–";
  }
}
