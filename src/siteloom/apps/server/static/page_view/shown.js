// An archived page with some of its places lit.

import { Frame } from "../archived/frame.js";
import { around, numberedFrom, numberOf, rectanglesOf, rectanglesOfElement, textNumber } from "../archived/picking.js";
import { isRemoteAllowed } from "../archived/remote.js";

/** @import {Mark} from "../archived/overlay.js" */
/** @import {Palette} from "../archived/palette.js" */
/** @import {Pick} from "../archived/types.js" */

/**
 * A place that is lit; `button` is what stands for it beside the page.
 * @typedef {object} Lit
 * @property {Pick} pick
 * @property {number} place of the colour
 * @property {"value" | "withheld" | "unfound" | "node" | "word"} kind
 * @property {HTMLElement | null} button
 */

/** @typedef {{elements: number[], label: string}} Outline a record of a list */

/**
 * @typedef {object} Listeners
 * @property {(lit: Lit) => void} onChoose a lit place of the page was clicked
 * @property {(lit: Lit | null) => void} onPoint
 * @property {(event: KeyboardEvent) => void} onKey
 */

/** @type {Record<Lit["kind"], Mark["line"]>} */
const LINES = { value: "solid", withheld: "dashed", unfound: "dashed", node: "solid", word: "solid" };

/** What stands behind the number of the attribute; those without one are of none. */
const SIGNS = { value: "", withheld: " ×", unfound: " ?" };

export class ShownPage {
  #region;
  #lit;
  #records;
  #palette;
  #frame;
  #chosen = /** @type {Lit | null} */ (null);

  /**
   * @param {HTMLElement} region the element around the frame, which says which page and version it is
   * @param {Lit[]} lit
   * @param {Outline[]} records
   * @param {Palette} palette
   * @param {Listeners} listeners
   */
  constructor(region, lit, records, palette, listeners) {
    this.#region = region;
    this.#lit = lit;
    this.#records = records;
    this.#palette = palette;
    const iframe = region.querySelector("iframe");
    this.#frame = iframe && new Frame(iframe, {
      onClick: (element, text) => {
        const found = this.#litAt(element, text);
        if (found) listeners.onChoose(found);
      },
      onPoint: (element, text) => listeners.onPoint(this.#litAt(element, text)),
      onLeave: () => listeners.onPoint(null),
      onSelect: () => {},
      onKey: listeners.onKey,
    });
  }

  /** Show the page and light its places. */
  async show() {
    if (!this.#frame) return;
    const { page, version = "" } = this.#region.dataset;
    this.#region.setAttribute("aria-busy", "true");
    try {
      const isShown = await this.#frame.show({ id: page ?? "", version }, isRemoteAllowed());
      if (!isShown) return;
      this.#frame.overlay?.draw([...this.#records.map((one) => this.#outline(one)), ...this.#lit.map((one) => this.#mark(one))]);
      this.#draw();
    } finally {
      this.#region.removeAttribute("aria-busy");
    }
  }

  /** Outline a lit place and bring it into view; null outlines none. @param {Lit | null} lit */
  choose(lit) {
    this.#chosen = lit;
    const element = lit && this.#frame?.element(lit.pick.element);
    if (element) this.#frame?.reveal(element);
    this.#draw();
  }

  /** Outline a lit place for as long as it is pointed at. @param {Lit | null} lit */
  point(lit) {
    this.#draw(lit);
  }

  #draw(pointed = /** @type {Lit | null} */ (null)) {
    const shown = pointed ?? this.#chosen;
    this.#frame?.overlay?.point(shown ? [{ ...this.#mark(shown), line: "outline", label: "" }] : []);
  }

  /** @param {Lit} lit @returns {Mark} */
  #mark({ pick, place, kind }) {
    const isOfAttribute = kind in SIGNS;
    return {
      colour: isOfAttribute ? this.#palette.attribute(place) : this.#palette.neutral,
      line: LINES[kind],
      label: isOfAttribute ? `${place + 1}${SIGNS[kind]}` : "",
      rectangles: () => rectanglesOf(this.#frame?.element(pick.element), pick),
    };
  }

  /** @param {Outline} record @returns {Mark} */
  #outline({ elements, label }) {
    return {
      colour: this.#palette.neutral,
      line: "record",
      label,
      rectangles: () => around(elements.flatMap((number) => {
        const element = this.#frame?.element(number);
        return element ? rectanglesOfElement(element) : [];
      })),
    };
  }

  /**
   * What is lit where the pointer is: on the element or on one around it.
   * @param {Element} element
   * @param {Text | null} text
   */
  #litAt(element, text) {
    const number = text && textNumber(element, text);
    for (let each = /** @type {Element | null} */ (element); each; each = numberedFrom(each.parentElement)) {
      const here = this.#lit.filter(({ pick }) => pick.element === numberOf(/** @type {Element} */ (each)));
      const own = each === element ? here.filter(({ pick }) => pick.text === null || pick.text === number) : here;
      if (own.length) return own[0];
    }
    return null;
  }
}

/** What the buttons beside the page light. @param {ParentNode} parent @param {string} [selector] @returns {Lit[]} */
export const litOf = (parent, selector = "[data-pick]") =>
  [.../** @type {NodeListOf<HTMLElement>} */ (parent.querySelectorAll(selector))].map((button) => ({
    pick: JSON.parse(button.dataset.pick ?? ""),
    place: Number(button.dataset.place),
    kind: /** @type {Lit["kind"]} */ (button.dataset.kind),
    button,
  }));
