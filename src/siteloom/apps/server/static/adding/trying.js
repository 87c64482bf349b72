// One page, from the archive, the web or a file: a page shows what is found on it. It is not kept.

import { send } from "../siteloom.js";
import { doing } from "./doing.js";
import { sendFiles } from "./sending.js";

export function tryPage(form) {
  const section = form.closest("section");
  const problem = section.querySelector('[data-shows="problem"]');
  const progress = section.querySelector('[data-shows="progress"]');

  function tell(text) {
    progress.textContent = text;
    progress.hidden = !text;
  }

  /** The path of the page that shows what is found. */
  async function tried() {
    const [file] = form.elements.page.files;
    const text = form.elements.url.value.trim();
    if (!file && !text) throw new Error("Give the URL of a page, or a file with its HTML.");
    const found = text ? await send("POST", "/api/urls", { text }) : null;
    const url = found?.rows[0].urls[0] ?? null;
    if (!file && found.archived) return `/pages/at?url=${encodeURIComponent(url)}`;
    tell(file ? "The page is sent…" : "The page is fetched…");
    const upload = file
      ? await sendFiles([{ path: file.name, file }], () => {}, new AbortController().signal)
      : null;
    return (await send("POST", "/api/trials", { url, upload })).page;
  }

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    doing(event.submitter, problem, async () => {
      try {
        location.assign(await tried());
      } finally {
        tell("");
      }
    });
  });
}
