// The table of records without reloading: filtered while typing, sorted and paged by its links, walked by keys.

import { fetchPart, keyOf, Refused, toast } from "./siteloom.js";

const PAUSE = 250; // milliseconds after the last letter
const region = () => document.querySelector("[data-records]");
const withoutPlace = (address) => address.split("#")[0];
let here = withoutPlace(location.href);
let asking = null;
let waiting = 0;
/** The field in which letters were typed that were not asked for yet. */
let typedIn = null;

/** The address of the table as its fields are filled in now. */
function asTyped(form) {
  const fields = new URLSearchParams();
  for (const [name, value] of new FormData(form)) if (value.trim()) fields.append(name, value);
  return `${form.action.split("?")[0]}?${fields}`;
}

/** Fetch a table and show it in the place of this one; `keeps` says whether someone is typing in its fields. */
async function show(address, { keeps = false, adds = true } = {}) {
  asking?.abort();
  const mine = (asking = new AbortController());
  region().setAttribute("aria-busy", "true");
  try {
    const fresh = await fetchPart(address, "[data-records]", mine.signal);
    if (adds) history.pushState(null, "", address);
    else history.replaceState(null, "", address);
    here = withoutPlace(location.href);
    if (keeps && sameColumns(fresh)) replaceResults(fresh);
    else replaceAll(fresh, keeps);
    document.querySelector("[data-told]").textContent = region().querySelector('[data-part-of="total"]').textContent;
  } catch (error) {
    if (error instanceof Refused) location.assign(address); // what the server says instead has a page of its own
    else if (error.name !== "AbortError") toast("The server does not answer.", "error");
  } finally {
    if (asking === mine) region().setAttribute("aria-busy", "false");
  }
}

const columnsOf = (part) => part.querySelector("table").dataset.columns;
const sameColumns = (fresh) => columnsOf(fresh) === columnsOf(region());

/** Replace all but the fields, in which someone is typing. */
function replaceResults(fresh) {
  for (const part of fresh.querySelectorAll("[data-part-of]")) {
    region().querySelector(`[data-part-of="${part.dataset.partOf}"]`).replaceWith(part);
  }
  for (const part of [".heads", "tbody"]) region().querySelector(part).replaceWith(fresh.querySelector(part));
}

function replaceAll(fresh, keeps) {
  const place = keeps ? `[name="${CSS.escape(document.activeElement?.name ?? "")}"]` : placeOf(document.activeElement);
  const { scrollLeft } = region().querySelector(".table-box");
  region().replaceWith(fresh);
  const box = region().querySelector(".table-box");
  box.scrollLeft = scrollLeft;
  if (place) (region().querySelector(place) ?? box).focus({ preventScroll: true });
}

/** What finds an element that has the focus again in the next table; null if it is not in this one. */
function placeOf(element) {
  if (!region().contains(element)) return null;
  if (element.dataset.turn) return `[data-turn="${element.dataset.turn}"]`;
  const head = element.closest(".heads th");
  return head ? `.heads th:nth-child(${head.cellIndex + 1}) a` : ".table-box";
}

document.addEventListener("input", (event) => {
  const form = event.target.closest("[data-filters]");
  if (!form) return;
  clearTimeout(waiting);
  typedIn = event.target;
  waiting = setTimeout(() => {
    typedIn = null;
    show(asTyped(form), { keeps: true, adds: false });
  }, PAUSE);
});

document.addEventListener("submit", (event) => {
  const form = event.target;
  if (!region().contains(form)) return;
  event.preventDefault();
  event.submitter?.removeAttribute("aria-busy");
  forgetTyping();
  show(asTyped(form), { keeps: form.matches("[data-filters]") });
});

document.addEventListener("click", (event) => {
  const link = event.target.closest("a[href]");
  const isPlain = event.button === 0 && !event.ctrlKey && !event.metaKey && !event.shiftKey && !event.altKey;
  if (!link || !isPlain || !region().contains(link) || link.pathname !== "/records") return;
  event.preventDefault();
  const address = new URL(link.href);
  if (typedIn) { // the link does not know of it yet
    if (typedIn.value.trim()) address.searchParams.set(typedIn.name, typedIn.value);
    else address.searchParams.delete(typedIn.name);
    address.searchParams.delete("page");
  }
  forgetTyping();
  show(address.href);
});

function forgetTyping() {
  clearTimeout(waiting);
  typedIn = null;
}

addEventListener("popstate", () => {
  if (withoutPlace(location.href) !== here) show(location.href, { adds: false });
});

/** Give the focus to the row that is so many after the one that has it. */
function walk(steps) {
  const rows = [...region().querySelectorAll("tbody tr")];
  const from = rows.indexOf(document.activeElement?.closest("tbody tr"));
  const row = rows[Math.max(0, Math.min(rows.length - 1, from < 0 ? 0 : from + steps))];
  row?.focus({ preventScroll: true });
  row?.scrollIntoView({ block: "nearest" });
}

const turn = (where) => region().querySelector(`[data-turn="${where}"]`)?.click();

const KEYS = {
  j: () => walk(1),
  k: () => walk(-1),
  n: () => turn("next"),
  p: () => turn("previous"),
  "/": () => {
    const words = region().querySelector("[data-words]");
    words.focus();
    words.select();
  },
};

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && event.target.matches("input")) event.target.blur();
  const key = keyOf(event);
  if (key === "Enter" && event.target.matches("tbody tr")) event.target.querySelector("a[href]")?.click();
  if (!Object.hasOwn(KEYS, key)) return;
  event.preventDefault();
  KEYS[key]();
});
