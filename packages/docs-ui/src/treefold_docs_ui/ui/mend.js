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
const BOXES = "pre, .microlight, .table-container, .model-box, .json-schema-2020-12-body";
const watched = new WeakSet();
const waiting = new WeakSet();

/** Name and rank what is in `host`, now and whenever it changes. */
export function mend(host) {
  if (watched.has(host)) return;
  watched.add(host);
  host.addEventListener("keydown", sendByKey);
  host.addEventListener("click", ({ target }) => target.closest(".execute") && waiting.add(host));
  new MutationObserver(() => look(host)).observe(host, { childList: true, subtree: true });
  addEventListener("resize", () => reachSoon(host));
  look(host);
}

/** Enter in a field sends, as in any form; in the body it takes Ctrl beside it. */
function sendByKey({ key, target, ctrlKey, metaKey, isComposing, currentTarget }) {
  if (key !== "Enter" || isComposing) return;
  const isBody = target.matches("textarea.body-param__text");
  if (isBody ? !(ctrlKey || metaKey) : !target.matches("tr input[type=text]")) return;
  // After Swagger UI has heard of the key, and taken what was typed last.
  setTimeout(() => currentTarget.querySelector(".btn.execute")?.click());
}

/** What was sent leads the reader to what came back. */
function showAnswer(host) {
  const status = host.querySelector(".live-responses-table .response-col_status + td, .away");
  if (!waiting.has(host) || !status || host.querySelector(".loading-container")) return;
  waiting.delete(host);
  requestAnimationFrame(() => {
    const { top } = status.getBoundingClientRect();
    if (top > 0 && top < innerHeight * 0.7) return;
    host.querySelector(".execute-wrapper, .opblock-body > .btn-group")?.scrollIntoView({ block: "start" });
  });
}

let reaching = null;

function reachSoon(host) {
  cancelAnimationFrame(reaching);
  reaching = requestAnimationFrame(() => reach(host));
}

/** What scrolls can be scrolled with keys, too: it is a stop, as long as it scrolls. */
function reach(host) {
  for (const box of host.querySelectorAll(BOXES)) {
    const scrolls = box.scrollHeight > box.clientHeight || box.scrollWidth > box.clientWidth;
    if (scrolls) box.setAttribute("tabindex", "0");
    else box.removeAttribute("tabindex");
  }
}

function look(host) {
  reachSoon(host);
  for (const [selector, level] of LEVELS) {
    for (const heading of host.querySelectorAll(selector)) heading.setAttribute("aria-level", level);
  }
  for (const [selector, name] of NAMES) {
    for (const element of host.querySelectorAll(selector)) element.setAttribute("aria-label", name);
  }
  for (const row of host.querySelectorAll("tr[data-param-name], tr[data-property-name]")) {
    for (const input of row.querySelectorAll("input:not([type=checkbox]), select, textarea")) {
      input.setAttribute("aria-label", row.dataset.paramName ?? row.dataset.propertyName);
    }
    // All of them have one id, so that each label would tick the first box of the page.
    row.querySelector("label.parameter__empty_value_toggle")?.removeAttribute("for");
    row.querySelector("#include_empty_value")?.removeAttribute("id");
  }
  for (const credential of host.querySelectorAll(".auth-container")) {
    const words = [...credential.querySelectorAll("p")].map((line) => line.textContent);
    if (words.some((text) => /^In:\s*cookie$/.test(text.trim()))) credential.dataset.place = "cookie";
  }
  showAnswer(host);
  // Its label is other words than the button shows.
  host.querySelector(".auth-btn-wrapper .authorize")?.removeAttribute("aria-label");
}
