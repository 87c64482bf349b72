// The workbench's part of the server's API.

import { send } from "../siteloom.js";

/** @import {Change, State, Value} from "./types.js" */

/** Seconds after which the server is asked again for news that it refused to send. */
const NEWS_SECONDS = 15;

/** @param {Record<string, Value[] | null>} values */
const picksOf = (values) =>
  Object.fromEntries(Object.entries(values).map(([name, each]) => [name, each && each.map(({ pick }) => pick)]));

export class Api {
  #cluster;

  /** @param {string} cluster */
  constructor(cluster) {
    this.#cluster = `/api/clusters/${cluster.split("/").map(encodeURIComponent).join("/")}`;
  }

  /** @returns {Promise<State>} */
  workbench() {
    return send("GET", `${this.#cluster}/workbench`);
  }

  /**
   * The workbench with what is known of its pages from elsewhere; may take seconds.
   * @returns {Promise<State>}
   */
  known() {
    return send("GET", `${this.#cluster}/workbench/known`);
  }

  /** @param {Change} change @returns {Promise<State>} */
  change(change) {
    switch (change.kind) {
      case "values": {
        const { values, record, version, seen } = change;
        const body = { values: picksOf(values), record, version, seen };
        return send("PUT", `${this.#cluster}/pages/${change.page}/values`, body);
      }
      case "records": {
        const { records, version, seen } = change;
        const body = { records: records.map(picksOf), version, seen };
        return send("PUT", `${this.#cluster}/pages/${change.page}/records`, body);
      }
      case "attribute":
        return send("PUT", this.#attribute(change.name), { ...change.schema, seen: change.seen });
      case "removal":
        return send("DELETE", `${this.#attribute(change.name)}?seen=${change.seen}`);
    }
  }

  /** @returns {Promise<{job: number, url: string}>} */
  finish() {
    return send("POST", `${this.#cluster}/finish`);
  }

  /**
   * Tell whenever somebody changes something.
   * @param {(news: {revision: string, author: string | null}) => void} onChanged
   */
  follow(onChanged) {
    const events = new EventSource(`${this.#cluster}/events`);
    events.addEventListener("changed", (event) => onChanged(JSON.parse(event.data)));
    events.addEventListener("error", () => {
      // Browsers try again by themselves, but not if the person was signed out.
      if (events.readyState === EventSource.CLOSED) setTimeout(() => this.follow(onChanged), NEWS_SECONDS * 1000);
    });
  }

  /** @param {string} name */
  #attribute(name) {
    return `${this.#cluster}/attributes/${encodeURIComponent(name)}`;
  }
}
