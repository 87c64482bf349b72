// The bar of attributes: choose one, add one, change one where it stands.

import { colourOf } from "../archived/palette.js";
import { fill, make } from "./dom.js";
import { digitOf } from "./keys.js";
import { schemaInForce, schemaOf, UNSAID_SCHEMA } from "./state.js";

/** @import {Attribute, NamedSchema, Offer, Schema} from "./types.js" */

/** More would hide the attributes themselves. */
const MOST_OFFERS = 6;

const TYPES = ["text", "number", "price", "date", "url", "image", "rating"];

/** Characters of a name, of which the server takes no more. */
const LONGEST_NAME = 100;

/**
 * @typedef {object} ChipActions
 * @property {(name: string) => void} choose
 * @property {(name: string, former: string | null) => string | null} problemOfName why an attribute, which may
 *   have another name now, cannot be called so
 * @property {(name: string, schema: NamedSchema) => void} setAttribute
 * @property {(name: string) => void} removeAttribute
 * @property {() => void} leave the keys go back to the page
 */

export class Chips {
  #bar;
  #editor;
  #actions;
  #mayChange;
  #radios = make("div", { class: "radios", role: "radiogroup", "aria-label": "Attributes" });
  #offers = make("div", { class: "offers", role: "group", "aria-label": "Known attributes" });
  #adder;
  /** Name of the attribute in the editor. */
  #edited = "";

  /**
   * @param {HTMLElement} bar
   * @param {HTMLElement} editor
   * @param {boolean} mayChange
   * @param {ChipActions} actions
   */
  constructor(bar, editor, mayChange, actions) {
    this.#bar = bar;
    this.#editor = editor;
    this.#actions = actions;
    this.#mayChange = mayChange;
    this.#adder = make("button", {
      class: "quiet", type: "button", textContent: "+ attribute", hidden: !mayChange, onclick: () => this.add(),
    });
    this.#bar.append(this.#radios, this.#adder, this.#offers);
    this.#radios.addEventListener("keydown", (event) => this.#moveWithin(event));
  }

  /** @param {Attribute[]} attributes @param {Offer[]} offers @param {string | null} chosen */
  render(attributes, offers, chosen) {
    fill(this.#radios, ...attributes.map((attribute, place) => this.#chip(attribute, place, chosen)));
    fill(this.#offers, ...(this.#mayChange ? offers.slice(0, MOST_OFFERS).map((offer) => this.#offer(offer)) : []));
  }

  /** Ask for the name of a new attribute, in place. */
  add() {
    this.#openAdder("")?.focus();
  }

  /**
   * Show again what was typed of an attribute and not kept. The focus stays, for the person has gone on.
   * @param {Attribute | undefined} attribute what it is now, if there is one
   * @param {NamedSchema} typed
   */
  showAgain(attribute, typed) {
    const field = this.#editor.querySelector("input");
    if (field && this.#edited !== typed.name) return; // another one is being changed
    if (attribute) this.#openEditor(attribute, { ...typed, name: field?.value ?? typed.name });
    else this.#openAdder(typed.name);
  }

  /** @param {string} typed @returns {HTMLInputElement | null} the field for the name; null if it is open already */
  #openAdder(typed) {
    if (!this.#mayChange || this.#bar.querySelector("form")) return null;
    const field = new NameField(
      { "aria-label": "Name of the new attribute", placeholder: "name", value: typed },
      (name) => this.#actions.problemOfName(name, null));
    const { input } = field;
    const form = make("form", { class: "adder" }, input, field.told);
    const close = () => {
      if (this.#adder.hidden === false) return; // taking the form away blurs its field, which closes it again
      this.#adder.hidden = false;
      form.remove();
    };
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const name = field.read();
      if (name === null) return;
      close();
      this.#actions.setAttribute(name, { ...UNSAID_SCHEMA, name });
      this.#actions.leave();
    });
    input.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      close();
      this.#actions.leave();
    });
    input.addEventListener("blur", () => input.value.trim() || close());
    this.#adder.hidden = true;
    this.#adder.after(form);
    return input;
  }

  /** Open the editor of an attribute. @param {Attribute} attribute */
  edit(attribute) {
    if (!this.#mayChange) return;
    const input = this.#openEditor(attribute, attribute);
    input.focus();
    input.select();
  }

  /**
   * @param {Attribute} attribute
   * @param {NamedSchema} typed what the editor shows of it
   * @returns {HTMLInputElement} the field for the name
   */
  #openEditor(attribute, typed) {
    this.#edited = attribute.name;
    const schema = schemaOf(typed);
    const field = new NameField({ id: "attribute-name", value: typed.name, onchange: () => save() },
      (name) => this.#actions.problemOfName(name, this.#edited));
    const save = () => {
      const name = field.read();
      if (name === null) return false;
      const former = this.#edited;
      this.#edited = name;
      this.#actions.setAttribute(former, { ...schema, name });
      return true;
    };
    const form = make("form", { class: "inline", "aria-label": `Attribute ${this.#edited}`, onsubmit: (event) => {
      event.preventDefault();
      if (save()) this.closeEditor();
    } },
      labelled("Name", field.input),
      field.told,
      ...choicesFor(attribute).map(({ label, hint, key, options }) =>
        labelled(label, select(options, schema[key], (value) => {
          schema[key] = value;
          save();
        }), hint)),
      make("button", { class: "danger", type: "button", textContent: "Remove", onclick: () => {
        this.#actions.removeAttribute(this.#edited);
        this.closeEditor();
      } }),
      make("button", { type: "submit", textContent: "Done" }),
    );
    form.addEventListener("keydown", (event) => event.key === "Escape" && this.closeEditor());
    fill(this.#editor, form);
    this.#editor.hidden = false;
    return field.input;
  }

  closeEditor() {
    if (this.#editor.hidden) return;
    this.#editor.hidden = true;
    fill(this.#editor);
    this.#actions.leave();
  }

  /** @param {Attribute} attribute @param {number} place @param {string | null} chosen */
  #chip(attribute, place, chosen) {
    const { name } = attribute;
    const { multi, mandatory } = schemaInForce(attribute);
    const isChosen = name === chosen;
    const traits = [mandatory && "mandatory", multi && "several values"].filter(Boolean).join(", ");
    return make("button", {
      id: `attribute-${place + 1}`, class: `attribute colour-${colourOf(place)}`, type: "button", role: "radio",
      "aria-checked": String(isChosen), tabIndex: isChosen || (chosen === null && place === 0) ? 0 : -1,
      title: [traits, attribute.rule].filter(Boolean).join("; ") || "double click to change it",
      onclick: () => this.#actions.choose(name), ondblclick: () => this.edit(attribute),
    },
      make("span", { class: "digit", textContent: digitOf(place) }), " ",
      make("span", { class: "name", textContent: name }),
      make("span", { "aria-hidden": true, textContent: `${mandatory ? "*" : ""}${multi ? "+" : ""}` }),
    );
  }

  /** An attribute that is known from elsewhere, to be taken over by a click. @param {Offer} offer */
  #offer({ name, source, pages, example }) {
    return make("button", {
      id: `offer-${name}`, class: "quiet", type: "button", textContent: `+ ${name}`,
      title: `${source}, on ${pages} pages, such as “${example}”`,
      onclick: () => {
        this.#actions.setAttribute(name, { ...UNSAID_SCHEMA, name });
        this.#actions.leave(); // the field for a name may have the focus: Enter is meant for what is asked next
      },
    });
  }

  /** Arrow keys move between the chips, once one has the focus. @param {KeyboardEvent} event */
  #moveWithin(event) {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const chips = /** @type {HTMLElement[]} */ ([...this.#radios.children]);
    const place = chips.indexOf(/** @type {HTMLElement} */ (document.activeElement));
    const next = (place + step + chips.length) % chips.length;
    chips[next].focus();
    chips[next].click();
  }
}

/** A field for the name of an attribute, and what is wrong with what was typed there. */
class NameField {
  #problemOf;

  /** @param {Record<string, any>} settings @param {(name: string) => string | null} problemOf */
  constructor(settings, problemOf) {
    this.#problemOf = problemOf;
    this.input = /** @type {HTMLInputElement} */ (make("input", {
      type: "text", autocomplete: "off", maxLength: LONGEST_NAME, ...settings,
    }));
    this.told = make("span", { class: "error", role: "alert" });
  }

  /** The name that was typed; null if it cannot be one, which is told. @returns {string | null} */
  read() {
    const name = this.input.value.trim().replace(/\s+/g, " ");
    const problem = this.#problemOf(name);
    this.told.textContent = problem ?? "";
    this.input.setAttribute("aria-invalid", String(problem !== null));
    return problem === null ? name : null;
  }
}

/** @param {Attribute} attribute */
function choicesFor({ learned }) {
  /** @param {boolean | null | undefined} value @param {string} yes @param {string} no */
  const either = (value, yes, no) => [
    { label: value === null || value === undefined ? "as learned" : `as learned (${value ? yes : no})`, value: null },
    { label: yes, value: true }, { label: no, value: false },
  ];
  const types = TYPES.map((type) => ({ label: type, value: type }));
  const learnedType = learned?.type ? `as learned (${learned.type})` : "as learned";
  return [
    { label: "Values", key: "multi", options: either(learned?.multi, "several", "one") },
    { label: "Mandatory", key: "mandatory", options: either(learned?.mandatory, "yes", "no") },
    {
      label: "Constant", hint: "same when fetched again", key: "constant",
      options: either(learned?.constant, "yes", "changes"),
    },
    { label: "Type", key: "type", options: [{ label: learnedType, value: null }, ...types] },
  ];
}

/** @param {string} text @param {HTMLElement} control @param {string} [hint] */
const labelled = (text, control, hint) =>
  make("label", {}, text, control, hint && make("small", { class: "faint", textContent: hint }));

/**
 * @template T
 * @param {{label: string, value: T}[]} options
 * @param {T} chosen
 * @param {(value: T) => void} onChoose
 */
function select(options, chosen, onChoose) {
  const items = options.map(({ label, value }) => make("option", { textContent: label, selected: value === chosen }));
  const element = /** @type {HTMLSelectElement} */ (make("select", {}, ...items));
  element.addEventListener("change", () => onChoose(options[element.selectedIndex].value));
  return element;
}
