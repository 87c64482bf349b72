// Known records: sends a table to look at, and lets one key decide about a site.

import { sendFiles } from "./adding/sending.js";
import { keyOf } from "./siteloom.js";

const form = document.querySelector("[data-seeds-upload]");
if (form) {
  const part = (name) => form.querySelector(`[data-shows="${name}"]`);
  const button = form.querySelector("button");
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const file = form.elements.file.files[0];
    part("problem").hidden = true;
    part("sent").hidden = false;
    button.disabled = true;
    try {
      const tell = (bytes) => { part("sent").value = bytes / Math.max(1, file.size); };
      const upload = await sendFiles([{ path: file.name, file }], tell, new AbortController().signal);
      location.assign(`/seeds/uploads/${upload}`);
    } catch (error) {
      part("problem").textContent = error.message;
      part("problem").hidden = false;
    } finally {
      part("sent").hidden = true;
      button.disabled = false;
      button.removeAttribute("aria-busy");
    }
  });
}

document.addEventListener("keydown", (event) => {
  const key = event.repeat ? null : keyOf(event);
  if (key) document.querySelector(`[data-key="${CSS.escape(key)}"]`)?.click();
});
