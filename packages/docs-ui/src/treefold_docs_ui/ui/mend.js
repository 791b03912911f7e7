// What Swagger UI leaves out for readers who do not see it: names of fields and levels of headings.
// Its elements come and go, so they are looked at whenever something in the operation changes.

const LEVELS = [
  [".modal-ux-header h3", 2],
  [".opblock-body h4, .auth-container h4", 2],
  ["h5", 3],
];
const NAMES = [
  ["textarea.body-param__text", "Request body"],
  [".close-modal", "Close"],
];
const watched = new WeakSet();

/** Name and rank what is in `host`, now and whenever it changes. */
export function mend(host) {
  if (watched.has(host)) return;
  watched.add(host);
  new MutationObserver(() => look(host)).observe(host, { childList: true, subtree: true });
  look(host);
}

function look(host) {
  for (const [selector, level] of LEVELS) {
    for (const heading of host.querySelectorAll(selector)) heading.setAttribute("aria-level", level);
  }
  for (const [selector, name] of NAMES) {
    for (const element of host.querySelectorAll(selector)) element.setAttribute("aria-label", name);
  }
  for (const row of host.querySelectorAll("tr[data-param-name]")) {
    for (const input of row.querySelectorAll("input, select, textarea")) {
      input.setAttribute("aria-label", row.dataset.paramName);
    }
  }
  // Its label is other words than the button shows.
  host.querySelector(".auth-btn-wrapper .authorize")?.removeAttribute("aria-label");
}
