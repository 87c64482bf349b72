// What is known of a cluster, and how a change alters it. Functions from values to values; nothing here
// touches the page or the network.

/** @import {Attribute, Cell, Cells, Change, Page, Pick, Place, Question} from "./types.js" */
/** @import {RecordsChange, Schema, State, Value, ValuesChange} from "./types.js" */

/** @type {Cell} */
const NOTHING = {
  state: "unknown", values: [], finds: null, differs: false, source: null, at: null, revision: 0,
};

/** @param {State} state @param {number} id @returns {Page | undefined} */
export const pageOf = (state, id) => state.pages.find((page) => page.id === id);

/** @param {State} state @param {string | null} name @returns {Attribute | undefined} */
export const attributeOf = (state, name) => state.attributes.find((attribute) => attribute.name === name);

/**
 * The cells of a page, or of one of its records.
 * @param {Page | undefined} page
 * @param {number | null} record
 * @returns {Cells}
 */
const cellsOf = (page, record) => (record === null ? page?.cells : page?.records[record]) ?? {};

/** @param {State} state @param {Place} place @returns {Cell} */
export const cellOf = (state, place) =>
  cellsOf(pageOf(state, place.page), place.record)[place.attribute] ?? NOTHING;

/** Whether a person has said something about a cell. @param {Cell} cell */
export const isSaid = (cell) => cell.state === "said" || cell.state === "absent";

/** Whether a cell offers values that a person may confirm. @param {Cell} cell */
export const isOffered = (cell) => cell.state === "suggested" || cell.state === "known";

/** Whether it is known where values stand on the page: only then they can be said. @param {Value[]} values */
export const arePlaced = (values) => values.every(({ pick }) => pick !== null);

/** The first value of some changes of which it is not known where it stands. @param {Change[]} changes */
export const unplacedIn = (changes) => changes.flatMap(valuesOf).find(({ pick }) => pick === null);

/** @param {Change} change @returns {Value[]} */
function valuesOf(change) {
  const parts = change.kind === "values" ? [change.values] : change.kind === "records" ? change.records : [];
  return parts.flatMap((part) => Object.values(part)).flatMap((values) => values ?? []);
}

/** What a person said of a cell; null if nothing. @param {Cell} cell @returns {Value[] | null} */
const saidValues = (cell) => (isSaid(cell) ? cell.values : null);

/** What was said in cells. @param {Cells} cells @returns {Record<string, Value[]>} */
export const saidIn = (cells) =>
  Object.fromEntries(Object.entries(cells).flatMap(([name, cell]) => {
    const values = saidValues(cell);
    return values === null ? [] : [[name, values]];
  }));

/** Whether a revision was made before another. @param {string} revision @param {string} other */
export function isOlder(revision, other) {
  const [annotation, schema] = revision.split(".").map(Number);
  const [otherAnnotation, otherSchema] = other.split(".").map(Number);
  return annotation < otherAnnotation || schema < otherSchema;
}

/** @param {Place | Question} a @param {Place | Question} b */
export const isSamePlace = (a, b) =>
  a.page === b.page && a.attribute === b.attribute && a.record === b.record;

/** Whether no yes or no answers a question: only records that are marked. @param {Question} question */
export const hasNoAnswer = ({ attribute, kind }) => attribute === null && kind === "empty";

/** @param {Pick | null} a @param {Pick | null} b */
export const isSamePick = (a, b) =>
  a !== null && b !== null && a.element === b.element && a.text === b.text &&
  a.attribute === b.attribute && a.start === b.start && a.end === b.end;

/** What was said as plain schema. @param {Schema} attribute @returns {Schema} */
export const schemaOf = ({ multi, mandatory, constant, type }) => ({ multi, mandatory, constant, type });

/**
 * The schema in force: what was said, else what was learned.
 * @param {Attribute} attribute
 * @returns {Schema}
 */
export function schemaInForce(attribute) {
  const learned = attribute.learned;
  return {
    multi: attribute.multi ?? learned?.multi ?? null,
    mandatory: attribute.mandatory ?? learned?.mandatory ?? null,
    constant: attribute.constant ?? learned?.constant ?? null,
    type: attribute.type ?? learned?.type ?? null,
  };
}

/** @type {Schema} */
export const UNSAID_SCHEMA = { multi: null, mandatory: null, constant: null, type: null };

/**
 * The state once a change is taken in, as far as can be told before the server answers.
 * @param {State} state
 * @param {Change} change
 * @returns {State}
 */
export function applied(state, change) {
  switch (change.kind) {
    case "values":
      return {
        ...state,
        pages: state.pages.map((page) => (page.id === change.page ? withValues(page, change) : page)),
        questions: state.questions.filter((question) => !answers(change, question)),
      };
    case "records":
      return {
        ...state,
        pages: state.pages.map((page) => (page.id === change.page ? withRecords(page, change) : page)),
        questions: state.questions.filter((question) => question.page !== change.page),
      };
    case "attribute":
      return withAttribute(state, change.name, change.schema);
    case "removal":
      return withoutAttribute(state, change.name);
  }
}

/**
 * The changes that take a change back.
 * @param {State} state before the change
 * @param {Change} change
 * @returns {Change[]}
 */
export function inverse(state, change) {
  switch (change.kind) {
    case "values": {
      const page = pageOf(state, change.page);
      const cells = cellsOf(page, change.record);
      const former = Object.keys(change.values).map((name) => [name, saidValues(cells[name] ?? NOTHING)]);
      return [{ ...change, values: Object.fromEntries(former), version: page?.version }];
    }
    case "records":
      return sayingAgain(pageOf(state, change.page));
    case "attribute": {
      const former = attributeOf(state, change.name);
      return former
        ? [{ kind: "attribute", name: change.schema.name, schema: { ...schemaOf(former), name: change.name } }]
        : [{ kind: "removal", name: change.schema.name }];
    }
    case "removal": {
      const former = attributeOf(state, change.name);
      if (!former) return [];
      const schema = { ...schemaOf(former), name: change.name };
      return [{ kind: "attribute", name: change.name, schema }, ...everythingSaid(state, change.name)];
    }
  }
}

/**
 * A change with the version of the page and the revisions of what it is about, as a person sees them in a state.
 * One that was made of another version of the page stays about that.
 * @template {Change} C
 * @param {State} state
 * @param {C} change
 * @returns {C}
 */
export function withSeen(state, change) {
  switch (change.kind) {
    case "values": {
      const version = change.version ?? pageOf(state, change.page)?.version;
      return { ...change, version, seen: revisionsOf(state, change) };
    }
    case "records": {
      const page = pageOf(state, change.page);
      return { ...change, version: change.version ?? page?.version, seen: page?.revision };
    }
    case "attribute":
      return { ...change, seen: state.schema_revision };
    case "removal":
      return { ...change, seen: state.revision };
  }
}

/** @param {State} state @param {ValuesChange} change */
function revisionsOf(state, change) {
  const cells = cellsOf(pageOf(state, change.page), change.record);
  return Object.fromEntries(Object.keys(change.values).map((name) => [name, cells[name]?.revision ?? 0]));
}

/**
 * A change that waits, once another before it was answered: what that one did has been seen.
 * @param {State} state the answer
 * @param {Change} before
 * @param {Change} later
 * @returns {Change}
 */
export function seenAfter(state, before, later) {
  const isOfPage = "page" in before;
  if (isOfPage && "page" in later && later.page !== before.page) return later;
  if (isOfPage && later.kind === "attribute") return later;
  const seen = withSeen(state, later);
  if (seen.kind !== "values" || later.kind !== "values") return seen;
  const names = namesIn(before, later.record);
  const own = Object.entries(seen.seen ?? {}).filter(([name]) => names === null || names.has(name));
  return { ...later, seen: { ...later.seen, ...Object.fromEntries(own) } };
}

/**
 * The names of the cells of a record that a change alters; null for all of them.
 * @param {Change} change
 * @param {number | null} record
 */
function namesIn(change, record) {
  switch (change.kind) {
    case "values": return new Set(change.record === record ? Object.keys(change.values) : []);
    case "records": return null;
    case "attribute": return new Set([change.schema.name]);
    case "removal": return new Set([change.name]);
  }
}

/**
 * What others did between two states, in sentences.
 * @param {State} before
 * @param {State} after
 * @param {string} me
 */
export function doneByOthers(before, after, me) {
  const sentences = [];
  for (const page of after.pages) {
    const former = pageOf(before, page.id);
    for (const record of [null, ...page.records.keys()]) {
      const formerCells = cellsOf(former, record);
      for (const [name, cell] of Object.entries(cellsOf(page, record))) {
        if (!isSaid(cell) || cell.source === me || cell.revision === formerCells[name]?.revision) continue;
        const what = cell.state === "absent" ? `said that ${name} is absent` : `set ${name}`;
        sentences.push(`${cell.source} ${what} on page ${page.number}`);
      }
    }
  }
  return sentences;
}

/** @param {Page} page @param {ValuesChange} change @returns {Page} */
function withValues(page, change) {
  const cells = cellsOf(page, change.record);
  const changed = { ...cells };
  for (const [name, values] of Object.entries(change.values)) {
    changed[name] = withSaid(cells[name] ?? NOTHING, values);
  }
  if (change.record === null) return { ...page, cells: changed };
  const records = [...page.records];
  records[change.record] = changed;
  while (records.length && !Object.values(records[records.length - 1]).some(isSaid)) records.pop();
  return { ...page, records };
}

/** @param {Page} page @param {RecordsChange} change @returns {Page} */
function withRecords(page, change) {
  const records = change.records.map((values) =>
    Object.fromEntries(Object.entries(values).map(([name, each]) => [name, withSaid(NOTHING, each)])));
  return { ...page, cells: {}, records };
}

/**
 * The changes that say of a page what was said of it, whatever is said now.
 * @param {Page | undefined} page
 * @returns {Change[]}
 */
function sayingAgain(page) {
  if (!page) return [];
  const of = { page: page.id, version: page.version };
  /** @type {RecordsChange} */
  const records = { kind: "records", ...of, records: page.records.map(saidIn) };
  const values = saidIn(page.cells);
  return Object.keys(values).length ? [records, { kind: "values", ...of, record: null, values }] : [records];
}

/** @param {Cell} cell @param {Value[] | null} values @returns {Cell} */
function withSaid(cell, values) {
  if (values !== null) return { ...cell, state: values.length ? "said" : "absent", values, differs: false };
  const finds = cell.finds ?? [];
  return { ...cell, state: finds.length ? "suggested" : "unknown", values: finds, differs: false };
}

/** @param {ValuesChange} change @param {Question} question */
const answers = (change, question) =>
  question.page === change.page && question.record === change.record &&
  question.attribute !== null && question.attribute in change.values;

/** @param {State} state @param {string} name @param {Schema & {name: string}} schema @returns {State} */
function withAttribute(state, name, schema) {
  const former = attributeOf(state, name);
  if (!former) {
    const pages = state.pages.length;
    const added = { ...schema, learned: null, rule: null, settled: 0, found: 0, pages, remark: null };
    return { ...state, attributes: [...state.attributes, added] };
  }
  /** @param {Cells} cells */
  const renamed = (cells) =>
    Object.fromEntries(Object.entries(cells).map(([key, cell]) => [key === name ? schema.name : key, cell]));
  return {
    ...state,
    attributes: state.attributes.map((each) => (each === former ? { ...former, ...schema } : each)),
    pages: state.pages.map((page) => ({
      ...page, cells: renamed(page.cells), records: page.records.map(renamed),
    })),
    questions: state.questions.map((question) =>
      question.attribute === name ? { ...question, attribute: schema.name } : question),
  };
}

/** @param {State} state @param {string} name @returns {State} */
function withoutAttribute(state, name) {
  /** @param {Cells} cells */
  const without = ({ [name]: _, ...rest }) => rest;
  return {
    ...state,
    attributes: state.attributes.filter((attribute) => attribute.name !== name),
    pages: state.pages.map((page) => ({
      ...page, cells: without(page.cells), records: page.records.map(without),
    })),
    questions: state.questions.filter((question) => question.attribute !== name),
  };
}

/**
 * All that was said of an attribute, as changes that say it again.
 * @param {State} state
 * @param {string} name
 * @returns {ValuesChange[]}
 */
function everythingSaid(state, name) {
  return state.pages.flatMap((page) =>
    [null, ...page.records.keys()].flatMap((record) => {
      const values = saidValues(cellsOf(page, record)[name] ?? NOTHING);
      const { id, version } = page;
      return values === null ? [] : [{ kind: "values", page: id, version, record, values: { [name]: values } }];
    }));
}
