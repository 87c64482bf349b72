// All the text inside an element in one line, as the server reads it, and where each part of it stands.

/** Elements at whose edges a line ends: those of the server (BREAKS in siteloom.html.visible_text). */
const BREAKS = new Set((
  "address article aside blockquote body br button caption center dd details dialog dir div dl dt " +
  "fieldset figcaption figure footer form frameset h1 h2 h3 h4 h5 h6 header hgroup hr html legend " +
  "li listing main menu nav ol optgroup option p plaintext pre search section select summary table " +
  "tbody td textarea tfoot th thead title tr ul xmp"
).split(" "));

/** Elements whose text nobody sees; others of that kind are empty in the shown page. */
const UNSEEN = new Set(["head", "style"]);

/** Runs of what is not white space to the server. */
const WORDS = /[^\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+/g;

/** @typedef {{text: Text, offset: number, at: number, length: number}} Word where it stands, and in the line */

export class Reading {
  /** @type {Word[]} */
  #words = [];
  #isApart = false;
  line = "";

  /** @param {Element} element */
  constructor(element) {
    this.#read(element);
  }

  /**
   * The part of the line that is selected in the page; null if none of it is.
   * @param {Range} range
   * @returns {{start: number, end: number} | null}
   */
  partIn(range) {
    const first = this.#words.find(({ text, offset, length }) => range.comparePoint(text, offset + length - 1) >= 0);
    const last = this.#words.findLast(({ text, offset }) => range.comparePoint(text, offset + 1) <= 0);
    if (!first || !last) return null;
    const start = first.at + (first.text === range.startContainer ? Math.max(0, range.startOffset - first.offset) : 0);
    const isCut = last.text === range.endContainer;
    const end = last.at + (isCut ? Math.min(last.length, range.endOffset - last.offset) : last.length);
    return start < end ? { start, end } : null;
  }

  /**
   * Where part of the line stands in the page.
   * @param {number} start
   * @param {number} end
   * @returns {Range | null}
   */
  rangeOf(start, end) {
    const first = this.#words.find(({ at, length }) => at + length > start);
    const last = this.#words.findLast(({ at }) => at < end);
    if (!first || !last) return null;
    const range = first.text.ownerDocument.createRange();
    range.setStart(first.text, first.offset + Math.max(0, start - first.at));
    range.setEnd(last.text, last.offset + Math.min(last.length, end - last.at));
    return range;
  }

  /** @param {Element} element */
  #read(element) {
    const isBreak = BREAKS.has(element.localName);
    this.#isApart ||= isBreak;
    for (const child of element.childNodes) {
      if (child.nodeType === Node.TEXT_NODE) this.#readText(/** @type {Text} */ (child));
      else if (child.nodeType === Node.ELEMENT_NODE) this.#readInside(/** @type {Element} */ (child));
    }
    this.#isApart ||= isBreak;
  }

  /** @param {Element} element */
  #readInside(element) {
    const isOfPage = element.hasAttribute("data-siteloom") && !UNSEEN.has(element.localName);
    if (isOfPage) this.#read(element);
  }

  /** @param {Text} text */
  #readText(text) {
    let end = 0;
    for (const word of text.data.matchAll(WORDS)) {
      this.#isApart ||= word.index > end;
      if (this.#isApart && this.line) this.line += " ";
      this.#isApart = false;
      this.#words.push({ text, offset: word.index, at: this.line.length, length: word[0].length });
      this.line += word[0];
      end = word.index + word[0].length;
    }
    this.#isApart ||= end < text.length;
  }
}
