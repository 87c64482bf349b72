// Shows how far a job is while it runs. When it ends, the page is asked for again, with what came of it.

import { shownIn } from "./following.js";
import { toast } from "./siteloom.js";

for (const element of document.querySelectorAll("[data-job]")) {
  shownIn(element, element.dataset.job).then(() => {
    // Where something may be half filled in, one is told instead.
    const told = element.querySelector("[data-when-ended]");
    if (!told) {
      location.reload();
      return;
    }
    told.hidden = false;
    element.replaceChildren(told);
  }, (error) => toast(error.message, "error"));
}
