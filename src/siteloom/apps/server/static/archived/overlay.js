// Boxes drawn over the archived page, where its own styles cannot reach them.

/**
 * A box around something: `rectangles` are asked for whenever the page moves.
 * @typedef {object} Mark
 * @property {() => DOMRect[]} rectangles
 * @property {string} colour
 * @property {"solid" | "dashed" | "dotted" | "outline" | "record"} line
 * @property {string} label stands in the corner of the first box
 */

/** How each kind of line is drawn. */
const LINES = {
  solid: { border: "2px solid", fill: 16, gap: 2 },
  dashed: { border: "2px dashed", fill: 6, gap: 2 },
  dotted: { border: "3px dotted", fill: 6, gap: 2 },
  outline: { border: "3px solid", fill: 10, gap: 4 },
  record: { border: "1px solid", fill: 0, gap: 6 },
};

/** Boxes beyond this many tell nothing more, and drawing them takes longer than a person waits. */
const MOST_BOXES = 2000;

export class Overlay {
  #page;
  #host;
  #marks = document.createElement("div");
  #pointer = document.createElement("div");
  /** @type {Mark[]} */
  #drawnMarks = [];
  /** @type {Mark[]} */
  #drawnPointer = [];
  #isScheduled = false;

  /** @param {Document} page */
  constructor(page) {
    this.#page = page;
    this.#host = page.createElement("div");
    style(this.#host, {
      all: "initial", display: "block", position: "absolute", top: "0", left: "0", width: "0", height: "0",
      overflow: "visible", "pointer-events": "none", "z-index": "2147483647",
    });
    this.#host.setAttribute("aria-hidden", "true");
    this.#host.attachShadow({ mode: "closed" }).append(this.#pointer, this.#marks);
    page.documentElement.append(this.#host);
    new ResizeObserver(() => this.redraw()).observe(page.documentElement);
    for (const name of ["scroll", "load", "toggle", "transitionend"]) {
      page.addEventListener(name, () => this.redraw(), true);
    }
    page.defaultView?.addEventListener("resize", () => this.redraw());
  }

  /** Draw the values. @param {Mark[]} marks */
  draw(marks) {
    this.#drawnMarks = marks;
    this.redraw();
  }

  /** Draw what is pointed at. @param {Mark[]} marks */
  point(marks) {
    this.#drawnPointer = marks;
    this.#drawInto(this.#pointer, marks);
  }

  /** Draw all of it again before the next picture. */
  redraw() {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    requestAnimationFrame(() => {
      this.#isScheduled = false;
      this.#drawInto(this.#marks, this.#drawnMarks);
      this.#drawInto(this.#pointer, this.#drawnPointer);
    });
  }

  /** @param {HTMLElement} layer @param {Mark[]} marks */
  #drawInto(layer, marks) {
    const origin = this.#host.getBoundingClientRect();
    const boxes = marks.flatMap((mark) =>
      mark.rectangles().map((rectangle, index) => this.#box(mark, rectangle, origin, index === 0)));
    layer.replaceChildren(...boxes.slice(0, MOST_BOXES));
  }

  /** @param {Mark} mark @param {DOMRect} rectangle @param {DOMRect} origin @param {boolean} isFirst */
  #box({ line, colour, label }, rectangle, origin, isFirst) {
    const { border, fill, gap } = LINES[line];
    const box = this.#page.createElement("div");
    style(box, {
      position: "absolute", "box-sizing": "border-box", "border-radius": "3px",
      left: `${rectangle.left - origin.left - gap}px`, top: `${rectangle.top - origin.top - gap}px`,
      width: `${rectangle.width + 2 * gap}px`, height: `${rectangle.height + 2 * gap}px`,
      border: `${border} ${colour}`, background: `color-mix(in srgb, ${colour} ${fill}%, transparent)`,
    });
    const [left, top] = [rectangle.left - origin.left - gap, rectangle.top - origin.top - gap];
    if (isFirst && label) box.append(this.#corner(label, colour, left, top));
    return box;
  }

  /**
   * The label at the corner of a box, which stands at `left` and `top`: beyond the edge it would not be seen.
   * @param {string} label
   * @param {string} colour
   * @param {number} left
   * @param {number} top
   */
  #corner(label, colour, left, top) {
    const corner = this.#page.createElement("span");
    corner.textContent = label;
    style(corner, {
      position: "absolute", left: `${Math.max(-13, -left)}px`, top: `${Math.max(-11, -top)}px`,
      "min-width": "15px", padding: "0 3px",
      "box-sizing": "border-box", "border-radius": "8px", font: "bold 11px/15px system-ui, sans-serif",
      "text-align": "center", "white-space": "nowrap", color: "white", background: colour,
    });
    return corner;
  }
}

/** @param {HTMLElement} element @param {Record<string, string>} values */
function style(element, values) {
  for (const [name, value] of Object.entries(values)) element.style.setProperty(name, value, "important");
}
