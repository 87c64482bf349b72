// The page to add pages: each of its forms has its own module.

import { addFiles } from "./files.js";
import { tryPage } from "./trying.js";
import { addStart, addUrls } from "./urls.js";

const form = (name) => document.querySelector(`[data-adding="${name}"]`);

addFiles(form("files"));
addUrls(form("urls"), form("shapes"));
addStart(form("start"));
tryPage(form("try"));
