// Starts the annotator of the page it stands in.

import { Api } from "./api.js";
import { Workbench } from "./workbench.js";

const root = /** @type {HTMLElement} */ (document.querySelector(".annotator"));
const { cluster = "", me = "", account, role } = root.dataset;
const asked = new URLSearchParams(location.search).get("page");
const api = new Api(cluster);

try {
  const state = await api.workbench();
  const page = asked === null ? null : Number(asked);
  const visitor = { me, hasAccount: account !== undefined, mayChange: role !== "viewer", page };
  await new Workbench(root, api, state, visitor).start();
} catch (error) {
  const problem = /** @type {HTMLElement} */ (root.querySelector("[data-part=problem]"));
  problem.textContent = /** @type {Error} */ (error).message;
  problem.hidden = false;
}
