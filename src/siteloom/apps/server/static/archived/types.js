// The words of what shows archived pages.

/**
 * What a person pointed at: an element of the page, one of its texts, part of that text, or an HTML attribute.
 * @typedef {object} Pick
 * @property {number} element number of the element in the served tree
 * @property {number | null} text number of the text child, from 1; null: all text inside the element
 * @property {string | null} attribute name of the HTML attribute that is meant instead of text
 * @property {number | null} start
 * @property {number | null} end
 */

/**
 * A node of the shown page, and what of it is meant.
 * @typedef {object} Target
 * @property {Element} element
 * @property {Pick} pick
 */

export {};
