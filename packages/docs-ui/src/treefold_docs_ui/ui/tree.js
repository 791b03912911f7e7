// The tree beside the operations: folders that open, routes that are links, keys that walk.

import { badge, fill, h } from "./dom.js";
import { entriesBelow, matches, treeOf } from "./model.js";

const lastOf = (url) => url.slice(url.lastIndexOf("/"));

const CALM = 80; // up to this many routes every folder starts open

/** Draw the tree into `host`; gives what can be asked of it. */
export function makeTree(host, { linkTo }) {
  let all = [];
  let root = treeOf([]);
  let query = "";
  let current = "";
  const chosen = new Map(); // folders that the reader opened or closed; a new document keeps them

  host.addEventListener("keydown", walk);
  host.addEventListener("toggle", remember, { capture: true });

  function remember({ target }) {
    const folder = target.querySelector("summary")?.dataset.folder;
    if (!query && folder !== undefined) chosen.set(folder, target.open);
  }

  function draw() {
    const words = query.toLowerCase().split(/\s+/).filter(Boolean);
    const shown = words.length ? all.filter((entry) => matches(entry, words)) : all;
    const tree = words.length ? treeOf(shown) : root;
    const isOpen = ({ path }) =>
      words.length > 0 || (chosen.get(path) ?? (all.length <= CALM || !path.includes("/")));
    fill(
      host,
      shown.length
        ? h("ul", { class: "tree" }, drawLevel(tree, isOpen))
        : h("p", { class: "muted" }, words.length ? "No route matches" : "There are no routes"),
    );
    mark();
  }

  function drawLevel(folder, isOpen) {
    return [...folder.entries.map(drawEntry), ...folder.folders.map((each) => drawFolder(each, isOpen))];
  }

  function drawFolder(folder, isOpen) {
    const count = entriesBelow(folder).length;
    return h(
      "li",
      {},
      h(
        "details",
        { open: isOpen(folder) },
        h(
          "summary",
          { "data-folder": folder.path },
          h("span", { class: "name", title: folder.name }, folder.name),
          h("span", { class: "count", title: `${count} routes` }, String(count)),
        ),
        h("ul", {}, drawLevel(folder, isOpen)),
      ),
    );
  }

  function drawEntry(entry) {
    const label = entry.summary || (entry.file ? entry.file.split("/").pop() : lastOf(entry.url));
    const kind = entry.kind === "stream" ? "EVENTS" : entry.method;
    return h(
      "li",
      {},
      h(
        "a",
        {
          href: linkTo(entry),
          "data-entry": entry.id,
          class: entry.kind === "broken" ? "broken" : entry.deprecated ? "deprecated" : null,
          title: `${entry.method} ${entry.url}`,
        },
        badge(kind),
        h("span", { class: "spoken" }, ` ${entry.url} `),
        h("span", { class: "name" }, label),
        entry.kind === "broken" ? h("span", { class: "spoken" }, " failed to load") : null,
      ),
    );
  }

  function mark() {
    for (const link of host.querySelectorAll("a[data-entry]")) {
      if (link.dataset.entry !== current) {
        link.removeAttribute("aria-current");
        continue;
      }
      link.setAttribute("aria-current", "page");
      for (let up = link.closest("details"); up; up = up.parentElement.closest("details")) up.open = true;
      link.scrollIntoView({ block: "nearest" });
    }
  }

  function stops() {
    return [...host.querySelectorAll("summary, a[data-entry]")].filter((each) => each.checkVisibility());
  }

  function walk(event) {
    const here = event.target.closest("summary, a[data-entry]");
    if (!here || event.ctrlKey || event.metaKey || event.altKey) return;
    const folder = here.tagName === "SUMMARY" ? here.parentElement : null;
    const list = stops();
    const place = list.indexOf(here);
    let target = null;
    if (event.key === "ArrowDown") target = list[place + 1];
    else if (event.key === "ArrowUp") target = list[place - 1];
    else if (event.key === "Home") target = list[0];
    else if (event.key === "End") target = list[list.length - 1];
    else if (event.key === "ArrowRight" && folder) {
      if (folder.open) target = list[place + 1];
      else folder.open = true;
    } else if (event.key === "ArrowLeft") {
      if (folder?.open) folder.open = false;
      else target = here.closest("ul").closest("details")?.querySelector("summary");
    } else return;
    event.preventDefault();
    target?.focus();
  }

  return {
    show(entries) {
      all = entries;
      root = treeOf(entries);
      draw();
      return root;
    },
    search(text) {
      query = text;
      draw();
    },
    select(id) {
      current = id;
      mark();
    },
    first: () => host.querySelector("a[data-entry]"),
    step(distance) {
      const links = [...host.querySelectorAll("a[data-entry]")];
      const place = links.findIndex((link) => link.dataset.entry === current);
      links[Math.min(Math.max(place + distance, 0), links.length - 1)]?.click();
    },
  };
}
