// Pages that list several records: which record a value belongs to, and how a page becomes a list.

import { isSaid, isSamePick, saidIn } from "./state.js";

/** @import {Cells, Change, Page, Value} from "./types.js" */

/**
 * The record that a new value belongs to: the current one, or the next if the current one has the attribute already.
 * @param {Page} page
 * @param {number} current
 * @param {string} attribute
 */
export function recordFor(page, current, attribute) {
  const cell = page.records[current]?.[attribute];
  return cell && isSaid(cell) ? page.records.length : Math.min(current, page.records.length);
}

/**
 * The record that something inside a found record belongs to: the one that was said of it, or the next.
 * @param {Page} page
 * @param {(element: number) => boolean} isAround whether the element of a number is around it
 * @returns {number | null} null if it is in no found record
 */
export function recordAround(page, isAround) {
  const found = page.found_records[page.record_elements.findIndex((elements) => elements.some(isAround))];
  if (!found) return null;
  const record = page.records.findIndex((cells) => shareValue(found, cells));
  return record < 0 ? page.records.length : record;
}

/**
 * The changes that make what was said of a page the first record of a list.
 * @param {Page} page
 * @param {{attribute: string, former: Value[], latter: Value[]} | null} twins two values that a person gave one
 *   attribute, one after the other: they belong to two records
 * @returns {Change[]}
 */
export function asList(page, twins) {
  const said = saidIn(page.cells);
  if (!Object.keys(said).length) return [];
  const records = twins ? [{ ...said, [twins.attribute]: twins.former }, { [twins.attribute]: twins.latter }] : [said];
  return [{ kind: "records", page: page.id, records }];
}

/**
 * The changes that make the first record of a list what was said of the whole page, and take the others back.
 * @param {Page} page
 * @returns {Change[]}
 */
export function asDetail(page) {
  if (!page.records.length) return [];
  return [
    { kind: "records", page: page.id, records: [] },
    { kind: "values", page: page.id, record: null, values: saidIn(page.records[0]) },
  ];
}

/** The changes that confirm all records found on a page. @param {Page} page @returns {Change[]} */
export function withAllRecords(page) {
  const found = unsaidRecords(page);
  return found.length ? [{ kind: "records", page: page.id, records: [...page.records.map(saidIn), ...found] }] : [];
}

/** The records found on a page that nobody has spoken of yet. @param {Page} page */
export const unsaidRecords = (page) =>
  page.found_records.filter((found) => !page.records.some((cells) => shareValue(found, cells)));

/** @param {Record<string, Value[]>} found @param {Cells} cells */
const shareValue = (found, cells) =>
  Object.entries(found).some(([name, values]) =>
    values.some((value) => cells[name]?.values.some((said) => isSamePick(said.pick, value.pick))));
