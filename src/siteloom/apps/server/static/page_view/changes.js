// A page before and after: the values of an attribute are lit on both sides, and both go there.

import { Palette } from "../archived/palette.js";
import { litOf, ShownPage } from "./shown.js";

/** @import {Lit} from "./shown.js" */

const palette = new Palette();
const sides = [.../** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll(".side"))].map((side) => {
  const lit = litOf(document, `[data-pick][data-side="${side.dataset.side}"]`);
  const region = /** @type {HTMLElement} */ (side.querySelector(".page"));
  const shown = new ShownPage(region, lit, [], palette, {
    onChoose: (one) => choose(one.button), onPoint: () => {}, onKey: () => {},
  });
  return { lit, region, shown };
});

/** Go to a value, and on the other side to the first of its attribute. @param {HTMLElement | null | undefined} button */
function choose(button) {
  // What is brought into view in a frame would be brought into view around it as well, but there are two.
  const { scrollX, scrollY } = window;
  const attribute = button?.dataset.attribute;
  for (const { lit, shown } of sides) {
    const own = lit.find((one) => one.button === button) ?? lit.find((one) => one.button?.dataset.attribute === attribute);
    for (const one of lit) one.button?.setAttribute("aria-pressed", String(one === own));
    shown.choose(own ?? null);
  }
  window.scrollTo({ left: scrollX, top: scrollY, behavior: "instant" });
}

for (const { lit, region } of sides) {
  for (const one of lit) {
    one.button?.addEventListener("click", () => {
      choose(one.button);
      region.scrollIntoView({ block: "nearest" });
    });
  }
}

try {
  await Promise.all(sides.map(({ shown }) => shown.show()));
} catch (error) {
  const problem = /** @type {HTMLElement} */ (document.querySelector("[data-part=problem]"));
  problem.textContent = /** @type {Error} */ (error).message;
  problem.hidden = false;
}
const attribute = document.querySelector(".sides")?.getAttribute("data-attribute");
const all = sides.flatMap(({ lit }) => lit);
const first = all.find(({ button }) => button?.dataset.attribute === attribute) ?? all[0];
if (first) choose(first.button);
