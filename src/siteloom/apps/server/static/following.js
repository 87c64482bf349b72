// Jobs: started, and followed until they have ended.

import { grouped, send } from "./siteloom.js";

/** Seconds after which the server is asked again for news that it did not send. */
const AGAIN_SECONDS = 5;

/** Have a job done when it is its turn. */
export const startJob = (kind, given) => send("POST", "/api/jobs", { kind, arguments: given });

/**
 * A job once it has ended, however it did; `onProgress` gets it whenever it has changed.
 * Throws Refused if one may not, or cannot, see it any more.
 */
export function ended(id, onProgress = () => {}) {
  return new Promise((resolve, reject) => {
    const events = new EventSource(`/api/jobs/${id}/events`);
    events.addEventListener("progress", (event) => onProgress(JSON.parse(event.data)));
    events.addEventListener("ended", (event) => {
      events.close();
      resolve(JSON.parse(event.data));
    });
    events.addEventListener("error", async () => {
      // Browsers try again by themselves, but not if they were answered with something else.
      if (events.readyState !== EventSource.CLOSED) return;
      try {
        await send("GET", `/api/jobs/${id}`);
      } catch (error) {
        if (error.status < 500) {
          reject(error);
          return;
        }
      }
      setTimeout(() => ended(id, onProgress).then(resolve, reject), AGAIN_SECONDS * 1000);
    });
  });
}

/** Show in an element how far a job is; gives the job once it has ended. */
export const shownIn = (element, id) => ended(id, (job) => show(element, job));

function show(element, job) {
  element.querySelector('[data-shows="state"]').textContent = job.state;
  const bar = element.querySelector("progress");
  if (job.total) {
    bar.max = job.total;
    bar.value = job.done;
  } else {
    bar.removeAttribute("value");
  }
  if (job.message) {
    const count = job.total ? `${grouped(job.done)} of ${grouped(job.total)} ` : "";
    element.querySelector('[data-shows="progress"]').textContent = count + job.message;
  }
}
