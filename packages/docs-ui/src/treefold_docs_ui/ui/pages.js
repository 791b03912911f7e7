// What the main part of the page shows: the start, a folder, or the head of a route. Text only.

import { badge, h, prose } from "./dom.js";
import { daysOf, endOf, entriesBelow } from "./model.js";

/** Above every page of a deprecated version: since when, until when, and where to go; else null. */
export function versionBanner({ info, name, hasDocument, linkToDocument }) {
  const end = endOf(info);
  if (!end.deprecated) return null;
  const use = hasDocument(end.successor)
    ? [" Use ", h("a", { class: "link", href: linkToDocument(end.successor) }, end.successor), "."]
    : [];
  const isWeb = /^(https?:\/\/|\/(?!\/))/.test(end.link);
  const more = isWeb
    ? [" ", h("a", { class: "link", href: end.link, rel: "noopener noreferrer" }, "Read more"), "."]
    : [];
  return h("p", { class: "notice", role: "status" }, `${name} is deprecated${daysOf(end)}.`, use, more);
}

/** The start: what this is, its versions, and in development the files that are not served. */
export function startPage({ info, root, site, folderLink }) {
  const folders = root.folders.length === 1 ? root.folders[0].folders : root.folders;
  return [
    h("h1", {}, info?.title ?? "API", " ", info?.version ? h("small", {}, info.version) : null),
    h("div", { class: "prose" }, prose(info?.description)),
    h(
      "ul",
      { class: "cards" },
      folders.map((folder) =>
        h(
          "li",
          {},
          h(
            "a",
            { href: folderLink(folder.path) },
            h("strong", {}, folder.name),
            h("span", { class: "muted" }, routes(entriesBelow(folder).length)),
          ),
        ),
      ),
    ),
    ...problems(site),
  ];
}

/** In place of what an address asks for and the document does not have. */
export function missingPage({ missing, name, startLink }) {
  return [
    h("h1", {}, "Not found"),
    h("p", { class: "notice", role: "status" }, `There is no ${missing} in ${name}. It may be in another version, or its folder has another name by now.`),
    h("p", { class: "lead" }, h("a", { class: "link", href: startLink }, "Go to the start page")),
  ];
}

function routes(count) {
  return count === 1 ? "1 route" : `${count} routes`;
}

/** Broken files with their tracebacks, skipped files with their reasons; empty where all is well. */
export function problems(site) {
  const parts = [];
  if (site?.broken.length) {
    parts.push(
      h(
        "section",
        { class: "problems broken", "aria-label": "Files with errors" },
        h("h2", {}, "Files with errors"),
        h("ul", {}, site.broken.map((file) => h("li", {}, h("code", {}, `${site.root}/${file.file}`), failure(file)))),
      ),
    );
  }
  if (site?.skipped.length) {
    parts.push(
      h(
        "section",
        { class: "problems", "aria-label": "Skipped files" },
        h("h2", {}, "Skipped files"),
        h(
          "ul",
          {},
          site.skipped.map((file) => h("li", {}, h("code", {}, `${site.root}/${file.file}`), h("p", {}, file.reason))),
        ),
      ),
    );
  }
  return parts;
}

/** What went wrong with a file, and behind it the traceback. */
export function failure({ error, traceback }) {
  if (!traceback) return h("p", {}, error);
  return h("details", {}, h("summary", {}, error), h("pre", { tabindex: "0" }, traceback));
}

/** A folder: its routes, each with its path and its words. */
export function folderPage({ folder, crumbs, linkTo }) {
  return [
    crumbs,
    h("h1", {}, folder.name),
    h(
      "ul",
      { class: "routes" },
      entriesBelow(folder).map((entry) =>
        h(
          "li",
          {},
          h(
            "a",
            { href: linkTo(entry) },
            badge(entry.method),
            h("code", { class: entry.deprecated ? "deprecated" : null }, entry.url),
            h("span", { class: "muted" }, entry.summary),
          ),
        ),
      ),
    ),
  ];
}

/** The head of a route: where it is, what it is, which file serves it, and what is wrong with it. */
export function routeHead({ entry, crumbs, rootName, broken }) {
  const file = entry.file === null ? null : `${rootName}/${entry.file}`;
  return [
    crumbs,
    h(
      "h1",
      { class: "route" },
      badge(entry.kind === "stream" ? "EVENTS" : entry.method),
      h("code", {}, entry.url),
    ),
    entry.summary ? h("p", { class: "lead" }, entry.summary) : null,
    entry.deprecated ? h("p", { class: "notice" }, `Deprecated${daysOf(entry)}: do not use it for anything new`) : null,
    entry.kind === "socket" && entry.description ? h("div", { class: "prose" }, prose(entry.description)) : null,
    file ? h("p", { class: "source" }, "Served by ", h("code", {}, file), copyButton(file)) : null,
    broken ? h("div", { class: "notice bad" }, "This file failed to load. ", failure(broken)) : null,
  ];
}

function copyButton(text) {
  if (!navigator.clipboard) return null; // a page that is neither local nor behind TLS has none
  const button = h("button", { type: "button", class: "quiet", "aria-label": `Copy ${text}` }, "Copy");
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
    setTimeout(() => (button.textContent = "Copy"), 2000);
  });
  return button;
}
