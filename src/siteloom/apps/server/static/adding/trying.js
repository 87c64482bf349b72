// One page, from the archive, the web or a file: when it is there, its page shows what is found on it.

import { ended, startJob } from "../following.js";
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

  async function started() {
    const [file] = form.elements.page.files;
    const text = form.elements.url.value.trim();
    if (!file && !text) throw new Error("Give the URL of a page, or a file with its HTML.");
    const found = text ? await send("POST", "/api/urls", { text }) : null;
    const url = found?.rows[0].urls[0] ?? null;
    if (file) {
      tell("The page is sent…");
      const upload = await sendFiles([{ path: file.name, file }], () => {}, new AbortController().signal);
      return startJob("ingest", { upload, name: file.name, url });
    }
    if (found.archived) return { at: url };
    tell("The page is fetched…");
    return startJob("fetch", { urls: [url] });
  }

  /** The URL of the page that a job has brought. */
  async function brought(id) {
    const job = await ended(id, ({ state, message }) =>
      tell(message || (state === "waiting" ? "It waits for its turn…" : "It begins…")));
    if (job.state !== "done") throw new Error(job.problem ?? "The job was cancelled.");
    if (!job.result.url) throw new Error("There is no page in it, or more than one.");
    return job.result.url;
  }

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    doing(event.submitter, problem, async () => {
      try {
        const job = await started();
        const url = job.at ?? await brought(job.id);
        location.assign(`/pages/at?url=${encodeURIComponent(url)}`);
      } finally {
        tell("");
      }
    });
  });
}
