// Sends files, several at once, and tells how much has gone.

import { send } from "../siteloom.js";

const AT_ONCE = 4; // files; more would only wait for each other

/** Was stopped by the person who began it. */
export class Cancelled extends Error {}

const address = (path, upload) =>
  `/api/uploads/${path.split("/").map(encodeURIComponent).join("/")}${upload ? `?upload=${upload}` : ""}`;

function put(path, file, upload, token, onSent, signal) {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("PUT", address(path, upload));
    request.responseType = "json";
    request.setRequestHeader("X-CSRF-Token", token);
    request.setRequestHeader("Content-Type", "application/octet-stream");
    request.upload.addEventListener("progress", (event) => onSent(event.loaded));
    request.addEventListener("load", () => {
      if (request.status === 201) resolve(request.response.upload);
      else reject(new Error(request.response?.detail ?? `The server answered with ${request.status}.`));
    });
    request.addEventListener("error", () => reject(new Error(`The connection was lost while ${path} was sent.`)));
    request.addEventListener("abort", () => reject(new Cancelled("Nothing was added.")));
    signal.addEventListener("abort", () => request.abort());
    request.send(file);
  });
}

/**
 * Send files (`[{path, file}]`) as one upload and give its id.
 * `onSent` is told how many bytes have gone; `signal` stops it.
 */
export async function sendFiles(files, onSent, signal) {
  const { csrf } = await send("GET", "/api/me");
  const gone = new Map();
  const sendOne = ({ path, file }, upload) =>
    put(path, file, upload, csrf, (bytes) => {
      gone.set(path, Math.min(bytes, file.size));
      onSent([...gone.values()].reduce((sum, some) => sum + some, 0));
    }, signal);
  const [first, ...others] = files;
  const upload = await sendOne(first, null);
  const worker = async () => {
    for (let next = others.shift(); next && !signal.aborted; next = others.shift()) await sendOne(next, upload);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  if (signal.aborted) throw new Cancelled("Nothing was added.");
  return upload;
}
