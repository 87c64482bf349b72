// The colours of attributes.

const COLOURS = 9;

/** Number of the colour of the attribute at a place. @param {number} place */
export const colourOf = (place) => (place % COLOURS) + 1;

/** The colours of the attributes as the archived page shows them: pages are mostly white, also in the dark. */
export class Palette {
  #styles = getComputedStyle(document.documentElement);
  #dark = matchMedia("(prefers-color-scheme: dark)");

  /** @param {number} place */
  attribute(place) {
    return this.#onPaper(`--attribute-${colourOf(place)}`);
  }

  get neutral() {
    return this.#onPaper("--accent");
  }

  /** @param {string} name */
  #onPaper(name) {
    const colour = this.#styles.getPropertyValue(name).trim();
    return this.#dark.matches ? `color-mix(in oklab, ${colour} 60%, black)` : colour;
  }
}
