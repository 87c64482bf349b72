// What all pages share: requests to the server, keys, numbers, and short messages at the edge of the screen.

/** A request that the server refused; `detail` is its sentence, `body` all that it said. */
export class Refused extends Error {
  constructor(status, body) {
    super(body?.detail ?? `The server answered with ${status}.`);
    this.status = status;
    this.body = body;
  }
}

/** The JSON that the server answers to a request; `body` is sent as JSON. Throws Refused. */
export async function send(method, path, body) {
  try {
    return await request(method, path, body);
  } catch (error) {
    if (!(await hasNewToken(error))) throw error;
    return request(method, path, body);
  }
}

const tokenElement = () => document.querySelector('meta[name="csrf-token"]');

/** Whether a request was refused for its token, because the person has signed in again elsewhere. */
async function hasNewToken(error) {
  if (error.status !== 401 && error.status !== 403) return false;
  const { csrf } = await request("GET", "/api/me");
  const element = tokenElement();
  if (!element || element.content === csrf) return false;
  element.content = csrf;
  return true;
}

async function request(method, path, body) {
  const headers = { Accept: "application/json" };
  const token = tokenElement()?.content;
  if (token) headers["X-CSRF-Token"] = token;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const response = await fetch(path, {
    method,
    headers,
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  const answer = response.status === 204 ? null : await response.json().catch(() => null);
  if (!response.ok) throw new Refused(response.status, answer);
  return answer;
}

const TOAST_SECONDS = 6;

/** Show a message for a while; `kind` is "" or "error". */
export function toast(message, kind = "") {
  const element = document.createElement("p");
  element.className = kind ? `toast ${kind}` : "toast";
  element.textContent = message;
  document.querySelector(".toasts").append(element);
  setTimeout(() => element.remove(), TOAST_SECONDS * 1000);
}

/** The part of the page at an address that a selector finds, to be put into this one. Throws Refused. */
export async function fetchPart(address, selector, signal) {
  const response = await fetch(address, { signal });
  const page = new DOMParser().parseFromString(await response.text(), "text/html");
  const part = response.ok ? page.querySelector(selector) : null;
  if (!part) throw new Refused(response.status, null);
  return document.adoptNode(part);
}

/** The key that is pressed for a whole page; null while someone types, or if the browser has a use for it. */
export function keyOf(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return null;
  return event.target.closest?.("input, select, textarea, dialog, [contenteditable]") ? null : event.key;
}

const numbers = new Intl.NumberFormat("en", { useGrouping: true });

/** A number with its thousands apart. */
export const grouped = (value) => numbers.format(value).replaceAll(",", "\u202f");

// A button that was pressed shows that it was, until one comes back to its page.
document.addEventListener("submit", (event) => {
  if (event.submitter instanceof HTMLButtonElement) event.submitter.setAttribute("aria-busy", "true");
});
addEventListener("pageshow", ({ persisted }) => {
  if (persisted) for (const button of document.querySelectorAll("button[aria-busy]")) button.removeAttribute("aria-busy");
});

// On a small screen the sections are scrolled to the one that is shown.
const here = document.querySelector(".sections [aria-current]");
if (here) {
  const sections = here.parentElement;
  sections.scrollLeft = here.offsetLeft - sections.offsetLeft - (sections.clientWidth - here.offsetWidth) / 2;
}

/** Fill in a part of the page that takes the server a while: what its own page has as data-part. */
async function include(place) {
  place.setAttribute("aria-busy", "true");
  try {
    const part = await fetchPart(place.dataset.include, "[data-part]");
    place.replaceChildren(...part.childNodes);
  } catch {
    // The link to its own page stays, and that tells what is wrong.
  } finally {
    place.setAttribute("aria-busy", "false");
  }
}

const seen = new IntersectionObserver((entries) => {
  for (const entry of entries) {
    if (!entry.isIntersecting) continue;
    seen.unobserve(entry.target);
    include(entry.target);
  }
}, { rootMargin: "200px" });
for (const place of document.querySelectorAll("[data-include]")) seen.observe(place);
