// The review: a key or a button decides, the next card is there at once, and the work is done behind it.

import { ended, startJob } from "./following.js";
import { fetchPart, keyOf, send, toast } from "./siteloom.js";

const SECONDS_TO_UNDO = 12;
/** Milliseconds for which a new card cannot be decided about: the second half of a double click is not meant for it. */
const SETTLING = 400;

/** What was decided and is done, or about to be, by the key of its card. @type {Set<string>} */
const decided = new Set();
/** Why the work on a card failed, by its key. @type {Map<string, string>} */
const problems = new Map();
/** Pages of the review that were asked for before they are needed, by their address. */
const ahead = new Map();
/** What the buttons to undo do, the newest last. @type {HTMLButtonElement[]} */
const undoable = [];
/** Of the card that is shown: since when, and at which address. */
let since = -Infinity;
let here = location.pathname + location.search;
/** How many cards were asked for: an answer that comes after a later question is not shown. */
let questions = 0;

const review = () => document.querySelector("[data-review]");
const card = () => review().querySelector("[data-card]");
const addressOf = (key) => `/review?item=${encodeURIComponent(key)}`;

// What is shown

/** The part of the page at an address that this script replaces. */
const fetched = (address) => fetchPart(address, "[data-review]");

function askAhead(address) {
  const asked = fetched(address);
  asked.catch(() => ahead.delete(address)); // told when it is needed
  ahead.set(address, asked);
}

/** Show the page at an address in the place of this one. */
async function show(address, { isNew = true } = {}) {
  const asked = ahead.get(address) ?? fetched(address);
  ahead.clear();
  const question = ++questions;
  let part;
  try {
    part = await asked;
  } catch {
    if (question === questions) location.assign(address); // the browser tells best what is wrong
    return;
  }
  if (question !== questions) return;
  review().replaceWith(part);
  if (isNew) history.pushState(null, "", address);
  here = address;
  since = performance.now();
  if (decided.has(card().dataset.card)) sayInstead("You have decided about this", "It is being done.");
  arrange();
  document.querySelector("#review-title")?.focus();
  scrollTo({ top: 0 });
}

/** The entries of what still waits, in their order. */
const waiting = () =>
  [...review().querySelectorAll("[data-item]")].filter((entry) => !decided.has(entry.dataset.item));

/** Make the list say what is decided and what failed, and ask for the next card. */
function arrange() {
  for (const group of review().querySelectorAll("[data-group]")) {
    let count = 0;
    for (const entry of group.querySelectorAll("[data-item]")) {
      entry.hidden = decided.has(entry.dataset.item);
      if (!entry.hidden) count += 1;
      mark(entry.querySelector("a"), problems.get(entry.dataset.item), "span");
    }
    group.querySelector("[data-count]").textContent = count;
    group.hidden = count === 0;
  }
  const decisions = waiting().filter((entry) => entry.closest("[data-decisions]")).length;
  const badge = document.querySelector(".sections .badge");
  badge.textContent = decisions;
  badge.hidden = decisions === 0;
  const own = card().dataset.card;
  mark(card(), own && problems.get(own), "p");
  const next = following();
  if (next) askAhead(addressOf(next));
}

/** Show a sentence about what failed, or take it away. */
function mark(place, sentence, tag) {
  place.querySelector(":scope > .problem")?.remove();
  if (!sentence) return;
  const told = document.createElement(tag);
  told.className = tag === "p" ? "problem notice bad" : "problem";
  told.textContent = sentence;
  if (tag === "p") place.prepend(told);
  else place.append(told);
}

/** The key of what waits after the card that is shown, the first again after the last. */
function following() {
  const own = card().dataset.card;
  const all = [...review().querySelectorAll("[data-item]")];
  const place = all.findIndex((entry) => entry.dataset.item === own);
  const around = [...all.slice(place + 1), ...all.slice(0, Math.max(0, place))];
  return around.find((entry) => !decided.has(entry.dataset.item))?.dataset.item ?? null;
}

/** Say something in the place of the card. */
function sayInstead(title, sentence) {
  const section = document.createElement("section");
  section.className = "empty";
  section.innerHTML = '<h2 id="review-title" tabindex="-1"></h2><p></p>';
  section.firstChild.textContent = title;
  section.lastChild.textContent = sentence;
  card().replaceChildren(section);
}

/** Go on to the next card; if there is none, say so. */
async function goOn() {
  const next = following();
  if (next) return show(addressOf(next));
  const own = card().dataset.card;
  if (own && !decided.has(own)) return toast("Nothing else waits.");
  if (!decided.size) return undefined;
  // The server still knows of what is being done: what is decided is not shown again.
  questions += 1;
  sayInstead("All decided", "Nothing else waits for you.");
  card().dataset.card = "";
  arrange();
  document.querySelector("#review-title").focus();
  return undefined;
}

// What is decided

/** How a job ended; one is asked about at a time, as they are done in their order. */
let line = Promise.resolve();
function endedInLine(id) {
  const end = line.then(() => ended(id));
  line = end.catch(() => {}); // told by whoever waits for it
  return end;
}

const WORDS = { accept: "Accepted", leave_out: "Goes on without it", reject: "Rejected", dismiss: "Set aside" };

/** The kind of job that undoes a decision; it takes the arguments of the decision. */
const UNDO_KINDS = { accept: "reopen", leave_out: "reopen", reject: "reopen", dismiss: "restore" };

/** What to say when a decision is undone: which version is in force, if the decision had made another. */
const undoneMessage = ({ result }) =>
  result.version && result.version !== result.version_before
    ? `It waits again. The version before is in force again, as version ${result.version}.`
    : "It waits again.";

async function decide(form) {
  const { decision } = form.dataset;
  const key = card().dataset.card;
  if (!key || decided.has(key) || performance.now() - since < SETTLING) return;
  const name = document.querySelector("#review-title").textContent.trim();
  const given = {};
  for (const input of form.querySelectorAll('input[type="hidden"]')) {
    if (input.name === "csrf" || input.name === "kind") continue;
    given[input.name] = "number" in input.dataset ? Number(input.value) : input.value;
  }
  decided.add(key);
  problems.delete(key);
  const started = startJob(decision, given);
  const end = started.then((job) => endedInLine(job.id));
  offerUndo(`${WORDS[decision]}: ${name}`, end, () => undoDecision(decision, given, key, started, end));
  end.then((job) => job.state === "done" || failed(key, name, job), (error) => failed(key, name, error));
  await goOn();
}

/** Let a card wait again that nothing came of, with the reason. */
async function failed(key, name, why) {
  if (why.state === "cancelled") return; // by whoever took it back
  const sentence = why.problem ?? why.message;
  decided.delete(key);
  problems.set(key, sentence);
  toast(`${name}: ${sentence}`, "error");
  await again();
}

/** Look what waits now; the card that a person is looking at stays. */
async function again() {
  const own = card().dataset.card;
  if (!own || (!decided.has(own) && card().querySelector(".empty"))) {
    await show(own ? addressOf(own) : "/review");
    return;
  }
  ahead.clear();
  try {
    const part = await fetched(addressOf(own));
    const list = part.querySelector(".review-list");
    if (list && card().dataset.card === own) {
      const old = review().querySelector(".review-list");
      if (old) old.replaceWith(list);
      else review().append(list);
    }
  } catch {
    // What is shown stays as it was.
  }
  arrange();
}

async function undoDecision(decision, given, key, started, end) {
  const { id } = await started;
  // What is being done is not cut short: half of it would be in force. It is undone when it is done.
  const { state } = await send("GET", `/api/jobs/${id}`);
  if (state === "waiting") await send("POST", `/api/jobs/${id}/cancel`);
  else toast("It is being undone.");
  const was = await end;
  if (was.state === "done") {
    const done = await endedInLine((await startJob(UNDO_KINDS[decision], given)).id);
    if (done.state !== "done") {
      toast(done.problem ?? "It was not undone: someone has cancelled that.", "error");
      return;
    }
    toast(undoneMessage(done));
  } else {
    toast("It waits again.");
  }
  decided.delete(key);
  await again();
}

/** Say what was decided, with a button that takes it back; it stays for a while after that is done. */
function offerUndo(message, end, undo) {
  const element = document.createElement("p");
  element.className = "toast undoable";
  const words = document.createElement("span");
  words.textContent = message;
  const button = document.createElement("button");
  button.type = "button";
  button.innerHTML = "Undo <kbd>z</kbd>";
  element.append(words, button);
  const leave = () => {
    element.remove();
    if (undoable.includes(button)) undoable.splice(undoable.indexOf(button), 1);
  };
  button.addEventListener("click", () => {
    leave();
    undo().catch((error) => toast(error.message, "error"));
  });
  undoable.push(button);
  document.querySelector(".toasts").append(element);
  end.then((job) => setTimeout(leave, job.state === "done" ? SECONDS_TO_UNDO * 1000 : 0), leave);
}

// Keys and clicks

document.addEventListener("keydown", (event) => {
  if (event.repeat) return;
  const key = keyOf(event);
  if (key === "z") undoable.at(-1)?.click();
  if (key === "s" || key === "ArrowRight") goOn();
  else if (/^[a-z]$/.test(key)) card().querySelector(`[data-key="${key}"]`)?.click();
  else return;
  event.preventDefault();
});

document.addEventListener("submit", (event) => {
  const form = event.target.closest("form[data-decision]");
  if (!form) return;
  event.preventDefault();
  event.submitter?.removeAttribute("aria-busy"); // it is done behind the next card
  decide(form);
});

document.addEventListener("click", (event) => {
  const link = event.target.closest("a[data-go]");
  if (!link || event.button !== 0 || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  if (link.dataset.key === "s") goOn();
  else show(link.getAttribute("href"));
});

addEventListener("popstate", () => {
  const address = location.pathname + location.search;
  if (address !== here) show(address, { isNew: false }); // else it is another place on the same page
});

arrange();
