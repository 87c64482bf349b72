// URLs that are pasted: by shape at once, and those of the shapes that are wanted are fetched.

import { startJob } from "../following.js";
import { grouped, send } from "../siteloom.js";
import { doing } from "./doing.js";

const SHAPES_SHOWN = 100; // the others are taken together
const PAUSE = 500; // milliseconds after the last key

function element(tag, properties, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

/** A cell that tells its column by itself where there is no room for columns. */
function labelled(label, properties, ...children) {
  const cell = element("td", properties, ...children);
  cell.dataset.label = label;
  return cell;
}

function wrappers(row) {
  const chips = row.wrappers.map((one) => {
    const count = one.count === row.count ? "" : ` ${grouped(one.count)}`;
    return element("a", { className: "chip good", href: `/wrappers/${encodeURIComponent(one.name)}` }, one.name + count);
  });
  if (row.unmatched) {
    const count = row.unmatched === row.count ? "none" : `none for ${grouped(row.unmatched)}`;
    chips.push(element("span", { className: "chip" }, count));
  }
  return chips.flatMap((chip) => [chip, " "]);
}

function tableRow(row, number, checked) {
  const box = element("input", { type: "checkbox", name: "shape", value: String(number), checked, id: `shape-${number}` });
  const label = element("label", { className: "shape-label", htmlFor: box.id }, element("code", { className: "shape" }, row.shape));
  const example = element("span", { className: "faint url" }, row.examples[0]);
  const archived = row.archived ? element("span", { className: "faint" }, ` ${grouped(row.archived)} in the archive already`) : "";
  return element("tr", {},
    element("td", {}, box),
    element("th", { scope: "row" }, label, example, archived),
    labelled("URLs", { className: "number" }, grouped(row.count)),
    labelled("Wrapper", {}, ...wrappers(row)));
}

/** The last row of many: all shapes that are not shown, as if they were one. */
function together(rows) {
  const wrappers = new Map();
  for (const one of rows.flatMap((row) => row.wrappers)) wrappers.set(one.name, (wrappers.get(one.name) ?? 0) + one.count);
  const sum = (name) => rows.reduce((total, row) => total + row[name], 0);
  return {
    shape: `${grouped(rows.length)} other shapes`,
    examples: rows[0].examples,
    urls: rows.flatMap((row) => row.urls),
    count: sum("count"),
    unmatched: sum("unmatched"),
    archived: sum("archived"),
    wrappers: [...wrappers].map(([name, count]) => ({ name, count })),
  };
}

export function addUrls(form, shapes) {
  const section = shapes.closest('[data-shows="shapes"]');
  const body = shapes.querySelector("tbody");
  const problem = form.querySelector('[data-shows="problem"]');
  const button = section.querySelector('button[name="fetch"]');
  const boxes = () => [...body.querySelectorAll('input[name="shape"]')];
  let rows = [];
  let pause = 0;
  let asked = 0;

  const shapesOf = (some) => new Set(some.map((box) => rows[Number(box.value)].shape));
  const wanted = () => boxes().filter((box) => box.checked).flatMap((box) => rows[Number(box.value)].urls);

  function count() {
    const pages = wanted().length;
    button.textContent = `Fetch ${grouped(pages)} ${pages === 1 ? "page" : "pages"}`;
    button.disabled = !pages;
    shapes.elements.all.checked = boxes().every((box) => box.checked);
  }

  async function sort() {
    clearTimeout(pause);
    const number = ++asked;
    let found;
    try {
      found = await send("POST", "/api/urls", { text: form.elements.text.value });
    } catch (error) {
      if (number === asked) section.hidden = true; // what it shows is of another text
      throw error;
    }
    if (number !== asked) return; // something else was typed meanwhile
    const unwanted = shapesOf(boxes().filter((box) => !box.checked));
    const others = found.rows.slice(SHAPES_SHOWN);
    rows = others.length ? [...found.rows.slice(0, SHAPES_SHOWN), together(others)] : found.rows;
    body.replaceChildren(...rows.map((row, place) => tableRow(row, place, !unwanted.has(row.shape))));
    const without = section.querySelector('[data-shows="without"]');
    without.hidden = !found.lines_without;
    without.textContent = found.lines_without === 1
      ? "1 line has no URL of a page and is left out."
      : `${grouped(found.lines_without)} lines have no URL of a page and are left out.`;
    section.hidden = false;
    count();
  }

  form.elements.text.addEventListener("input", () => {
    clearTimeout(pause);
    problem.hidden = true;
    if (!form.elements.text.value.trim()) {
      asked += 1;
      section.hidden = true;
      body.replaceChildren();
      return;
    }
    // What is half typed is not wrong yet: only the button tells that there is no URL.
    pause = setTimeout(() => sort().catch(() => {}), PAUSE);
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    doing(form.elements.sort, problem, async () => {
      await sort();
      section.querySelector("h2").focus();
    });
  });
  shapes.addEventListener("change", (event) => {
    if (event.target.name === "all") for (const box of boxes()) box.checked = event.target.checked;
    count();
  });
  shapes.addEventListener("submit", (event) => {
    event.preventDefault();
    doing(button, shapes.querySelector('[data-shows="problem"]'), async () => {
      const job = await startJob("fetch", { urls: wanted(), cluster: true });
      location.assign(job.url);
    });
  });
}

export function addStart(form) {
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    doing(event.submitter, form.querySelector('[data-shows="problem"]'), async () => {
      const { rows } = await send("POST", "/api/urls", { text: form.elements.start.value });
      const job = await startJob("fetch", {
        start: rows[0].urls[0],
        follow: true,
        most_pages: Number(form.elements.most_pages.value),
        cluster: true,
      });
      location.assign(job.url);
    });
  });
}
