// Files that are dropped or chosen: which of them can be read, then off to the server and to their templates.

import { startJob } from "../following.js";
import { grouped } from "../siteloom.js";
import { doing } from "./doing.js";
import { Cancelled, sendFiles } from "./sending.js";

const NAMES_TOLD = 3;
const UNITS = ["bytes", "kB", "MB", "GB", "TB"];

function size(bytes) {
  let unit = 0;
  while (bytes >= 1000 && unit < UNITS.length - 1) {
    bytes /= 1000;
    unit += 1;
  }
  return `${unit && bytes < 10 ? bytes.toFixed(1) : Math.round(bytes)}\u202f${UNITS[unit]}`;
}

/** All files of what was dropped, those of folders with their paths. */
async function dropped(transfer) {
  const entries = [...transfer.items].map((item) => item.webkitGetAsEntry?.()).filter(Boolean);
  if (!entries.length) return [...transfer.files].map((file) => ({ path: file.name, file }));
  const found = [];
  for (const entry of entries) await walk(entry, found);
  return found;
}

async function walk(entry, found) {
  if (entry.isFile) {
    const file = await new Promise((resolve, reject) => entry.file(resolve, reject));
    found.push({ path: entry.fullPath.replace(/^\//, ""), file });
    return;
  }
  const reader = entry.createReader();
  for (;;) { // browsers give some at a time, and none when all were given
    const some = await new Promise((resolve, reject) => reader.readEntries(resolve, reject));
    if (!some.length) return;
    for (const one of some) await walk(one, found);
  }
}

export function addFiles(form) {
  const drop = form.querySelector("[data-drop]");
  const told = form.querySelector('[data-shows="chosen"]');
  const problem = form.querySelector('[data-shows="problem"]');
  const sending = form.querySelector('[data-shows="sending"]');
  const sent = form.querySelector('[data-shows="sent"]');
  const bar = sending.querySelector("progress");
  const suffixes = form.dataset.suffixes.split(" ");
  const first = told.textContent;
  let chosen = [];
  let stopping = null;

  const isPages = ({ path }) => {
    const name = path.split("/").at(-1);
    return name === form.dataset.index || suffixes.some((suffix) => name.toLowerCase().endsWith(suffix));
  };

  /** What is chosen, in a few words. */
  function called() {
    const names = chosen.slice(0, NAMES_TOLD).map(({ path }) => path).join(", ");
    return chosen.length > NAMES_TOLD ? `${names} and ${grouped(chosen.length - NAMES_TOLD)} more` : names;
  }

  function choose(files) {
    const largest = Number(form.dataset.largest);
    const readable = files.filter(isPages);
    chosen = readable.filter(({ file }) => file.size && file.size <= largest);
    const left = files.length - chosen.length;
    const bytes = chosen.reduce((sum, { file }) => sum + file.size, 0);
    told.textContent = chosen.length ? `${called()}, ${size(bytes)}` : first;
    drop.classList.toggle("filled", chosen.length > 0);
    form.elements.send.disabled = !chosen.length;
    problem.hidden = !left;
    const tooLarge = readable.find(({ file }) => file.size > largest);
    if (tooLarge) problem.textContent = `${tooLarge.path} is left out: at most ${size(largest)} can be sent.`;
    else if (chosen.length) problem.textContent = `${grouped(left)} other ${left === 1 ? "file is" : "files are"} left out: empty, or no pages.`;
    else if (readable.length) problem.textContent = `${readable[0].path} is empty: choose a file with something in it.`;
    else problem.textContent = `Cannot tell what ${files[0]?.path} is: choose WARC, HTML, JSON Lines or Parquet files.`;
  }

  for (const input of [form.elements.files, form.elements.folder]) {
    const take = () => choose([...input.files].map((file) => ({ path: file.webkitRelativePath || file.name, file })));
    input.addEventListener("change", take);
    if (input.files.length) take(); // chosen before this script was there
  }
  // Anywhere on the page: a file that misses would be opened by the browser, and the page be gone.
  const hasFiles = (event) => event.dataTransfer.types.includes("Files");
  document.addEventListener("dragover", (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    drop.classList.add("over");
  });
  document.addEventListener("dragleave", (event) => {
    if (!event.relatedTarget) drop.classList.remove("over");
  });
  document.addEventListener("drop", async (event) => {
    if (!hasFiles(event) || event.target.closest?.('input[type="file"]')) return;
    event.preventDefault();
    drop.classList.remove("over");
    const files = await dropped(event.dataTransfer);
    if (files.length && !stopping) choose(files);
  });

  form.elements.cancel.addEventListener("click", () => stopping?.abort());
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    doing(form.elements.send, problem, async () => {
      const whole = chosen.reduce((sum, { file }) => sum + file.size, 0);
      stopping = new AbortController();
      sending.hidden = form.elements.cancel.hidden = false;
      const show = (bytes) => {
        bar.value = bytes / whole;
        sent.textContent = `${size(bytes)} of ${size(whole)} sent`;
      };
      show(0);
      try {
        const upload = await sendFiles(chosen, show, stopping.signal);
        const job = await startJob("ingest", {
          upload,
          name: called(),
          site: form.elements.site.value.trim() || null,
          resources: form.elements.resources.checked,
          cluster: true,
        });
        location.assign(job.url);
      } catch (error) {
        stopping.abort();
        if (!(error instanceof Cancelled)) throw error;
      } finally {
        stopping = null;
        sending.hidden = form.elements.cancel.hidden = true;
      }
    });
  });
}
