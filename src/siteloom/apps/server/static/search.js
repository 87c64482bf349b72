// The search page: keys to walk through hits, and what is new is indexed while people look at what there is.

import { shownIn, startJob } from "./following.js";
import { fetchPart, keyOf } from "./siteloom.js";

const box = document.querySelector('input[name="words"]');
const results = document.querySelector("[data-results]");
const wide = matchMedia("(min-width: 45.01rem)");

/** Beside the hits all facets are seen; above them, on a small screen, they are folded. */
function unfold() {
  const facets = document.querySelector("[data-facets]");
  if (facets) facets.open = wide.matches;
}
wide.addEventListener("change", unfold);
unfold();

document.addEventListener("keydown", (event) => {
  const key = event.target === box && event.key.startsWith("Arrow") ? event.key : keyOf(event);
  if (key === "/") {
    event.preventDefault();
    box.focus();
    box.select();
  } else if (key === "ArrowDown" || key === "ArrowUp") {
    walk(event, key === "ArrowDown" ? 1 : -1);
  }
});

/** From the box to the first hit, from hit to hit, and back; elsewhere the arrows scroll as ever. */
function walk(event, step) {
  const stops = [box, ...results.querySelectorAll("[data-hit]")];
  const here = stops.indexOf(document.activeElement);
  if (here < 0 || !stops[here + step]) return;
  event.preventDefault();
  stops[here + step].focus();
  stops[here + step].closest(".hit")?.scrollIntoView({ block: "nearest" });
}

const indexing = document.querySelector("[data-indexing]");

/** Have what is new indexed, unless a job does that already, and show what is found then. */
async function index(id) {
  const progress = indexing.querySelector("[data-index-progress]");
  const button = indexing.querySelector("[data-index-button]");
  try {
    const job = id ?? (await startJob("index", {})).id;
    progress.hidden = false;
    if (button) button.hidden = true;
    tell("What is new is being indexed; what was indexed before is searched meanwhile. When it ends, this page shows what is found then.");
    const end = await shownIn(progress, job);
    if (end.state !== "done") throw new Error(end.problem ?? "");
    await showAnew();
    tell("All is indexed."); // the line stays: without it, all below would move while one reads
  } catch (error) {
    tell(`What is new could not be indexed. ${error.message}`);
    if (button) button.hidden = false;
  } finally {
    progress.hidden = true;
  }
}

function tell(sentence) {
  indexing.querySelector("[data-index-told]").textContent = sentence;
}

/** The results of the same search, as they are now; whoever stands on a hit stays there. */
async function showAnew() {
  const fresh = await fetchPart(location.href, "[data-results]");
  const link = document.activeElement?.matches?.("[data-hit]") ? document.activeElement.href : null;
  results.replaceChildren(...fresh.childNodes);
  unfold();
  [...results.querySelectorAll("[data-hit]")].find((hit) => hit.href === link)?.focus();
}

if (indexing?.dataset.indexJob) index(indexing.dataset.indexJob);
else if (indexing && "startsItself" in indexing.dataset) index(null);
