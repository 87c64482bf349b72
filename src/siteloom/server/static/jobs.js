// Shows how far jobs are while they run. When one ends, the page is asked for again, with what came of it.

const numbers = new Intl.NumberFormat("en", { useGrouping: true });
const shown = (value) => numbers.format(value).replaceAll(",", "\u202f");

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
    const count = job.total ? `${shown(job.done)} of ${shown(job.total)} ` : "";
    element.querySelector('[data-shows="progress"]').textContent = count + job.message;
  }
}

for (const element of document.querySelectorAll("[data-job]")) {
  const events = new EventSource(`/api/jobs/${element.dataset.job}/events`);
  events.addEventListener("progress", (event) => show(element, JSON.parse(event.data)));
  events.addEventListener("ended", () => {
    events.close();
    location.reload();
  });
}
