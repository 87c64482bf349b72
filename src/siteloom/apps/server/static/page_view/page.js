// The view of an archived page: what is known of it is lit, and walked through with keys.

import { Palette } from "../archived/palette.js";
import { isRemoteAllowed, toggleRemote } from "../archived/remote.js";
import { keyOf } from "../siteloom.js";
import { litOf, ShownPage } from "./shown.js";

/** @import {Lit} from "./shown.js" */

const root = /** @type {HTMLElement} */ (document.querySelector(".reader"));
const panel = /** @type {HTMLElement} */ (root.querySelector(".panel"));
const status = /** @type {HTMLElement} */ (root.querySelector("[data-part=status]"));
const remote = /** @type {HTMLElement} */ (root.querySelector("[data-part=remote]"));
const region = /** @type {HTMLElement} */ (root.querySelector(".page"));

const lit = litOf(panel);
const words = /** @type {Lit[]} */ (JSON.parse(panel.querySelector("[data-words]")?.getAttribute("data-words") ?? "[]")
  .map((/** @type {Lit["pick"]} */ pick) => ({ pick, place: 0, kind: "word", button: null })));
const records = [.../** @type {NodeListOf<HTMLElement>} */ (panel.querySelectorAll("[data-elements]"))].map((record) => ({
  elements: JSON.parse(record.dataset.elements ?? "[]"), label: `record ${Number(record.dataset.record) + 1}`,
}));

let chosen = /** @type {Lit | null} */ (null);

const shown = new ShownPage(region, [...words, ...lit], records, new Palette(), {
  onChoose: (one) => choose(one),
  onPoint: (one) => {
    for (const { button } of lit) button?.classList.toggle("pointed", button === one?.button);
  },
  onKey: press,
});

/** @param {Lit | null} one */
function choose(one) {
  chosen = one;
  for (const { button } of lit) button?.setAttribute("aria-pressed", String(button === one?.button));
  if (one?.button) {
    const record = one.button.closest("details.record");
    if (record instanceof HTMLDetailsElement) record.open = true;
    one.button.scrollIntoView({ block: "nearest" });
    status.textContent = `${one.button.dataset.attribute ?? ""} ${one.button.textContent?.trim() ?? ""}`.trim();
  } else if (one) {
    status.textContent = `Place ${words.indexOf(one) + 1} of ${words.length}`;
  }
  shown.choose(one);
}

/** Go to the next or former of some places; from none, to the first or last. @param {Lit[]} some @param {number} step */
function walk(some, step) {
  if (!some.length) return;
  const at = chosen ? some.indexOf(chosen) : -1;
  const next = at < 0 ? (step > 0 ? 0 : some.length - 1) : (at + step + some.length) % some.length;
  choose(some[next]);
}

async function toggleWeb() {
  toggleRemote();
  await show();
}

async function show() {
  remote.setAttribute("aria-pressed", String(isRemoteAllowed()));
  try {
    await shown.show();
  } catch (error) {
    status.textContent = /** @type {Error} */ (error).message;
  }
}

/** @param {KeyboardEvent} event */
function press(event) {
  switch (keyOf(event)) {
    case "j": return walk(lit, 1);
    case "k": return walk(lit, -1);
    case "n": return walk(words, 1);
    case "p": return walk(words, -1);
    case "w": return void toggleWeb();
    case "Escape": return choose(null);
  }
}

for (const one of lit) {
  one.button?.addEventListener("click", () => choose(one));
  one.button?.addEventListener("mouseenter", () => shown.point(one));
  one.button?.addEventListener("mouseleave", () => shown.point(null));
}
for (const button of panel.querySelectorAll("[data-step]")) {
  button.addEventListener("click", () => walk(words, Number(button.getAttribute("data-step"))));
}
remote.addEventListener("click", toggleWeb);
document.addEventListener("keydown", press);

/** What was asked for: a node, a value of a record or of an attribute, a word. */
function asked() {
  const { record, attribute } = root.dataset;
  const inRecord = record === undefined ? lit : lit.filter(({ button }) => {
    const part = button?.closest("details.record"); // a page that is one record has no such parts
    return !part || part.getAttribute("data-record") === record;
  });
  return lit.find(({ kind }) => kind === "node")
    ?? (attribute ? inRecord.find(({ button }) => button?.dataset.attribute === attribute) : undefined)
    ?? words[0]
    ?? (record === undefined ? null : inRecord[0] ?? null);
}

await show();
const first = asked();
if (first) choose(first);
