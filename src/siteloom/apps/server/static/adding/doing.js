// What a button asks for is done, and what goes wrong is shown beside where it was asked for.

/** Do what a button asks for: it is busy meanwhile, and a problem is told in the place for it. */
export async function doing(button, place, work) {
  if (button.getAttribute("aria-busy") === "true") return;
  place.hidden = true;
  button.setAttribute("aria-busy", "true");
  try {
    await work();
  } catch (error) {
    place.textContent = error.message;
    place.hidden = false;
  } finally {
    button.removeAttribute("aria-busy");
  }
}
