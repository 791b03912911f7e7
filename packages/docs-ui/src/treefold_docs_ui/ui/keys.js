// Keys, and the dialog that lists them. A key alone never acts while somebody writes.

import { h } from "./dom.js";

const KEYS = [
  ["/", "Search"],
  ["↑ ↓ ← →", "Walk the tree"],
  ["j, k", "Next and previous route"],
  ["t", "Light or dark"],
  ["Ctrl Enter", "Send the body or message"],
  ["Esc", "Leave the search"],
  ["?", "These keys"],
];

/** The dialog. */
export function keysDialog(hasLog) {
  const rows = hasLog ? [...KEYS.slice(0, 4), ["l", "Log"], ...KEYS.slice(4)] : KEYS;
  return h(
    "dialog",
    { class: "keys", "aria-label": "Keys" },
    h("h2", {}, "Keys"),
    h("dl", {}, rows.map(([key, words]) => h("div", {}, h("dt", {}, h("kbd", {}, key)), h("dd", {}, words)))),
    h("form", { method: "dialog" }, h("button", {}, "Close")),
  );
}

/** Listen to the keys of the page. */
export function listenToKeys({ search, tree, log, keys, theme }) {
  const actions = {
    "/": () => search.focus(),
    j: () => tree.step(1),
    k: () => tree.step(-1),
    t: theme,
    l: () => log?.toggle(),
    "?": () => keys.showModal(),
  };
  document.addEventListener("keydown", (event) => {
    const writing = event.target.closest?.("input, textarea, select, [contenteditable], dialog");
    if (writing || event.ctrlKey || event.metaKey || event.altKey) return;
    const action = Object.hasOwn(actions, event.key) ? actions[event.key] : null;
    if (!action) return;
    event.preventDefault();
    action();
  });
}
