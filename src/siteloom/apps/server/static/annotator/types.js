// The words of the annotator, as its modules and the server's JSON use them.

/** @typedef {import("../archived/types.js").Pick} Pick */
/** @typedef {import("../archived/types.js").Target} Target */

/**
 * @typedef {object} Value
 * @property {string} text
 * @property {Pick | null} pick
 * @property {number | null} confidence
 */

/**
 * What is known of one attribute on one page or record.
 * @typedef {object} Cell
 * @property {"said" | "absent" | "suggested" | "known" | "empty" | "unknown"} state
 * @property {Value[]} values
 * @property {Value[] | null} finds
 * @property {boolean} differs
 * @property {string | null} source
 * @property {string | null} at
 * @property {number} revision
 */

/** @typedef {Record<string, Cell>} Cells by name of the attribute */

/**
 * @typedef {object} Schema
 * @property {boolean | null} multi
 * @property {boolean | null} mandatory
 * @property {boolean | null} constant
 * @property {string | null} type
 */

/**
 * @typedef {Schema & {name: string, learned: Schema | null, rule: string | null,
 *   settled: number, found: number, pages: number, remark: string | null}} Attribute
 */

/**
 * @typedef {object} Page
 * @property {number} id
 * @property {number} number
 * @property {string} url
 * @property {string} version of the page, which picks are about
 * @property {number} revision of what was said of the page
 * @property {string} title
 * @property {number} covered
 * @property {boolean} is_settled
 * @property {string[]} authors
 * @property {Cells} cells
 * @property {Cells[]} records
 * @property {Record<string, Value[]>[]} found_records
 * @property {number[][]} record_elements
 */

/**
 * One cell: an attribute on a page, or in a record of a list page.
 * @typedef {object} Place
 * @property {number} page
 * @property {string} attribute
 * @property {number | null} record
 */

/**
 * Something to say yes or no to; without an attribute it is about all records found on a page.
 * @typedef {object} Question
 * @property {number} page
 * @property {string | null} attribute
 * @property {number | null} record
 * @property {string} kind
 * @property {string} text
 */

/**
 * @typedef {{name: string, source: string, pages: number, example: string}} Offer an attribute known from elsewhere
 */

/**
 * @typedef {object} State
 * @property {string} cluster
 * @property {string} site
 * @property {number} cluster_pages
 * @property {string} revision
 * @property {number} schema_revision
 * @property {boolean} is_list
 * @property {Attribute[]} attributes
 * @property {Offer[]} offers
 * @property {Page[]} pages
 * @property {Question[]} questions
 * @property {{settled: number, pages: number, covered: number, sentence: string, is_enough: boolean}} coverage
 * @property {string | null} problem
 */

/**
 * Values said of a page or record; an empty list says absent, null takes back what was said.
 * @typedef {object} ValuesChange
 * @property {"values"} kind
 * @property {number} page
 * @property {number | null} record
 * @property {Record<string, Value[] | null>} values
 * @property {string} [version] the version of the page that the values stand on
 * @property {Record<string, number>} [seen] revision of each cell that the person looked at
 */

/**
 * All records of a list page, in the place of whatever was said of it before.
 * @typedef {object} RecordsChange
 * @property {"records"} kind
 * @property {number} page
 * @property {Record<string, Value[]>[]} records
 * @property {string} [version] the version of the page that the records stand on
 * @property {number} [seen] revision of the page that the person looked at
 */

/** @typedef {Schema & {name: string}} NamedSchema */
/**
 * `seen` is the revision of the attributes that the person looked at.
 * @typedef {{kind: "attribute", name: string, schema: NamedSchema, seen?: number}} AttributeChange
 */
/**
 * `seen` is the revision of all that the person looked at.
 * @typedef {{kind: "removal", name: string, seen?: string}} Removal
 */
/** @typedef {ValuesChange | RecordsChange | AttributeChange | Removal} Change */

export {};
