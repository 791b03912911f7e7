// The page: one header, the tree, and the place where a route is shown. Everything that is shown
// comes from documents fetched as JSON; the query of the address is never read, its fragment only
// to look up a route that is known.

import { ask } from "./away.js";
import { eventConsole } from "./events.js";
import { fill, h } from "./dom.js";
import { keysDialog, listenToKeys } from "./keys.js";
import { makeLog } from "./log.js";
import { messagesPart } from "./messages.js";
import { entriesOf, folderAt, slice, treeOf } from "./model.js";
import { folderPage, missingPage, problems, routeHead, startPage, versionBanner } from "./pages.js";
import { whole } from "./sample.js";
import { socketConsole } from "./socket.js";
import { loadSwagger, makeOperationView } from "./swagger.js";
import { makeTree } from "./tree.js";

const config = JSON.parse(document.body.dataset.config);
const home = new URL(config.base, location.href); // the folder of the docs
home.hash = home.search = "";

const state = { name: config.documents[0].name, openapi: {}, entries: [], root: treeOf([]), site: null };
let apiRoot = location.origin;
let console_ = null;
let shown = null; // the last view, so that the same one is not drawn twice
let landing = ""; // where the focus goes after the next view: "main", "problems", or nowhere

// -- the frame ---------------------------------------------------------------------------------

const switcher = h(
  "select",
  { "aria-label": "Version", onchange: () => go({ doc: switcher.value }) },
  config.documents.map((each) => h("option", { value: each.name }, each.name)),
);
const search = h("input", {
  type: "search",
  placeholder: "Search routes",
  "aria-label": "Search routes",
  "aria-keyshortcuts": "/",
  autocomplete: "off",
  spellcheck: "false",
});
const menu = h(
  "button",
  { type: "button", class: "menu", "aria-expanded": "false", "aria-controls": "tree", onclick: () => openMenu() },
  "Routes",
);
const theme = h("button", { type: "button", class: "icon", onclick: () => window.toggleTheme() });
const help = h("button", { type: "button", class: "icon", "aria-label": "Keys", title: "Keys (?)" }, "?");
const alerts = h("a", { class: "alerts", hidden: true, onclick: () => landOn("problems") });
const brand = h(
  "a",
  { class: "brand" },
  h("img", { src: `${config.assets}/icon.svg`, alt: "" }),
  h("span", {}, config.title),
);
const treeHost = h("nav", { id: "tree", "aria-label": "Routes", tabindex: "-1" });
const page = h("div", { class: "page" });
const bannerHost = h("div", { class: "banner" });
const operationHost = h("div", { class: "operation", hidden: true });
const consoleHost = h("div", { class: "consoles" });
const moreHost = h("div", { class: "consoles" });
// A stop for keys, since what scrolls may hold nothing else that takes the focus.
const main = h("main", { id: "main", tabindex: "0", "aria-label": "Documentation" }, bannerHost, page, consoleHost, operationHost, moreHost);
const log = config.log
  ? makeLog({ url: new URL("log", home).href, isOwn: isOwnPath, onBoot: refresh })
  : null;
const logButton = log && h("button", { type: "button", onclick: log.toggle, title: "Log (l)", "aria-expanded": "false" }, "Log");
log?.onShow((visible) => logButton.setAttribute("aria-expanded", String(visible)));
const keys = keysDialog(log !== null);
help.addEventListener("click", () => keys.showModal());

const narrow = matchMedia("(max-width: 760px)"); // as in style.css
const tree = makeTree(treeHost, { linkTo });
const operation = makeOperationView(operationHost, {
  assets: config.assets,
  onAnswer: (answer) => log?.answered({ method: shown?.entry?.method ?? "", ...answer }),
  showLine: log?.lead ?? null,
});

document.body.append(
  h("a", { class: "skip", href: "#main", onclick: skip }, "Skip to the content"),
  h(
    "header",
    {},
    menu,
    brand,
    switcher,
    search,
    alerts,
    h("span", { class: "tools" }, logButton, help, theme),
  ),
  h("div", { class: "body" }, treeHost, main),
  ...(log ? [log.element] : []),
  keys,
);
if (config.documents.length < 2) switcher.hidden = true;

addEventListener("theme", nameTheme);
addEventListener("keydown", leaveMenu);
narrow.addEventListener("change", () => openMenu(false));
addEventListener("hashchange", () => follow());
search.addEventListener("input", () => {
  tree.search(search.value);
  if (search.value) openMenu(true);
});
search.addEventListener("keydown", (event) => {
  if (event.key === "Escape") clearSearch();
  else if (event.key === "Enter") tree.first()?.click();
  else if (event.key === "ArrowDown") tree.first()?.focus();
  else return;
  event.preventDefault();
});
treeHost.addEventListener("click", (event) => event.target.closest("a") && openMenu(false));
treeHost.addEventListener("keydown", (event) => {
  const link = event.target.closest("a[data-entry]");
  if (event.key === "Enter" && link) landOn("main", link);
});
main.addEventListener("click", () => openMenu(false));
listenToKeys({ search, tree, log, keys, theme: () => window.toggleTheme() });
nameTheme();

function skip(event) {
  event.preventDefault();
  main.focus();
}

/** Lead the reader to a place once what the link shows is there. */
function landOn(place, link = alerts) {
  landing = place;
  if (link.href === location.href) setTimeout(land); // nothing changes, so nothing is drawn
}

function land() {
  const place = landing;
  landing = "";
  if (place === "problems") page.querySelector(".problems")?.scrollIntoView({ block: "start" });
  if (place) main.focus({ preventScroll: place === "problems" });
}

function clearSearch() {
  search.value = "";
  tree.search("");
  search.blur();
}

function openMenu(open = menu.getAttribute("aria-expanded") !== "true") {
  menu.setAttribute("aria-expanded", String(open));
  document.body.classList.toggle("menu-open", open);
  main.inert = open && narrow.matches; // the tree lies over it
}

/** Go back from the tree to what it lies over. */
function leaveMenu(event) {
  if (event.key !== "Escape" || event.defaultPrevented || !main.inert) return;
  openMenu(false);
  menu.focus();
}

function nameTheme() {
  const dark = document.documentElement.dataset.theme === "dark";
  theme.textContent = dark ? "☀" : "☾";
  theme.setAttribute("aria-label", dark ? "Light colours" : "Dark colours");
  theme.title = `${dark ? "Light" : "Dark"} colours (t)`;
}

// -- addresses ---------------------------------------------------------------------------------

function hash(parts) {
  return `#${new URLSearchParams(parts)}`;
}

function linkTo(entry) {
  return hash({ doc: state.name, at: entry.id });
}

/** The start page; never `#` alone, whose clicks Swagger UI takes for itself. */
function startLink() {
  return hash({ doc: state.name });
}

function folderLink(path) {
  return hash({ doc: state.name, in: path });
}

function go(parts) {
  const wanted = new URLSearchParams(location.hash.slice(1));
  location.hash = hash({ ...Object.fromEntries(wanted), ...parts });
}

// -- documents ---------------------------------------------------------------------------------

async function json(url, optional = false) {
  const answer = await ask(new URL(url, home), { credentials: "same-origin" });
  if (!answer.ok && optional) return null;
  if (!answer.ok) throw new Error(`${url} answered ${answer.status}`);
  return answer.json();
}

async function load(name) {
  const { url, asyncapi } = config.documents.find((each) => each.name === name);
  const [openapi, sockets, site] = await Promise.all([
    json(url),
    asyncapi ? json(asyncapi, true) : null,
    config.site ? json("site.json", true) : null,
  ]);
  apiRoot = rootOf(openapi, new URL(url, home));
  Object.assign(state, { name, openapi: { ...openapi, servers: [{ url: apiRoot }] }, site });
  state.entries = entriesOf(openapi, sockets, site);
  state.root = tree.show(state.entries);
  switcher.value = name;
  brand.href = alerts.href = startLink();
  nameAlerts();
  const hasDocument = (wanted) => config.documents.some((each) => each.name === wanted);
  const linkToDocument = (wanted) => hash({ doc: wanted });
  fill(bannerHost, versionBanner({ info: openapi.info, name, hasDocument, linkToDocument }));
}

/** Where the API is: the first server on our own origin; no document leads anywhere else (S-115). */
function rootOf(openapi, base) {
  for (const { url } of openapi.servers ?? []) {
    const there = URL.canParse(url, base) ? new URL(url, base) : null;
    if (there?.origin === location.origin) return `${there.origin}${there.pathname}`.replace(/\/$/, "");
  }
  return location.origin;
}

function nameAlerts() {
  const { broken = [], skipped = [] } = state.site ?? {};
  alerts.hidden = broken.length + skipped.length === 0;
  alerts.classList.toggle("bad", broken.length > 0);
  const words = [];
  if (broken.length) words.push(broken.length === 1 ? "1 error" : `${broken.length} errors`);
  if (skipped.length) words.push(`${skipped.length} skipped`);
  alerts.textContent = words.join(", ");
}

let refreshing = null;

/** The application may have changed: look, and redraw what is different. */
function refresh() {
  clearTimeout(refreshing);
  refreshing = setTimeout(async () => {
    const before = seen();
    try {
      await load(state.name);
    } catch {
      return; // it is booting again; a line will say when it is there
    }
    if (seen() !== before) follow({ again: true });
  }, 100);
}

/** All that the view that is shown depends on: what is typed into it stays while that is the same. */
function seen() {
  const { entry } = shown ?? {};
  if (!entry) return JSON.stringify([state.openapi, state.site]);
  const now = state.entries.find(({ id }) => id === entry.id);
  if (!now) return "";
  const broken = state.site?.broken.find(({ file }) => file === now.file);
  const schemas = now.messages.map(({ schema }) => (schema ? whole(schema, now.schemas) : null));
  const operation = hasOperation(now) ? slice(state.openapi, now) : null;
  return JSON.stringify([{ ...now, schemas }, broken ?? null, operation]);
}

/** Whether a request is one of this page itself, which the log leaves out. */
function isOwnPath(path) {
  const own = config.documents.flatMap(({ url, asyncapi }) => [url, asyncapi ?? url]);
  const docs = home.pathname.replace(/\/$/, "");
  return path === docs || path.startsWith(`${docs}/`) || own.some((url) => new URL(url, home).pathname === path);
}

// -- what is shown -----------------------------------------------------------------------------

async function follow({ again = false } = {}) {
  const wanted = new URLSearchParams(location.hash.slice(1));
  const name = wanted.get("doc") ?? config.documents[0].name;
  const isKnown = config.documents.some((each) => each.name === name);
  try {
    if (isKnown && name !== state.name) await load(name);
  } catch (error) {
    showFailure(error);
    return;
  }
  const entry = entryOf(wanted.get("at"));
  const folder = wanted.has("in") ? folderAt(state.root, wanted.get("in")) : null;
  const missing = isKnown ? missingIn(wanted, entry, folder) : `version ${name}`;
  const view = { entry, folder, missing, key: `${state.name} ${missing || (entry?.id ?? folder?.path ?? "")}` };
  if (!again && shown?.key === view.key) {
    land();
    return;
  }
  if (shown) openMenu(false);
  shown = view;
  draw(view);
  land();
}

/** What an address asks for and this document does not have, in words; empty where it has all. */
function missingIn(wanted, entry, folder) {
  if (wanted.has("at")) return entry ? "" : `route ${wanted.get("at") || "without a name"}`;
  if (wanted.has("in")) return folder ? "" : `folder ${wanted.get("in") || "without a name"}`;
  const [first] = wanted.keys();
  return first === undefined || first === "doc" ? "" : `page ${location.hash}`;
}

/** The entry of an id; where another version was chosen, the same route in it. */
function entryOf(id) {
  const known = (sought) => state.entries.find((each) => each.id === sought);
  return known(id) ?? known(id?.replace(/ \/[^/]+/, ` /${state.name}`));
}

function hasOperation(entry) {
  return entry?.kind === "operation" || entry?.kind === "stream";
}

function draw({ entry, folder, missing }) {
  console_?.close();
  console_ = null;
  consoleHost.replaceChildren();
  moreHost.replaceChildren();
  tree.select(entry?.id ?? "");
  operationHost.hidden = Boolean(missing) || !hasOperation(entry);
  operationHost.classList.toggle("is-stream", entry?.kind === "stream");
  main.scrollTop = 0;
  if (!hasOperation(entry)) operation.leave();
  if (missing) fill(page, missingPage({ missing, name: state.name, startLink: startLink() }));
  else if (entry) drawRoute(entry);
  else if (folder) fill(page, folderPage({ folder, crumbs: crumbs(folder.path.split("/")), linkTo }));
  else fill(page, startPage({ info: state.openapi.info, root: state.root, site: state.site, folderLink }));
  document.title = entry ? `${entry.id} · ${config.title}` : config.title;
}

function drawRoute(entry) {
  const broken = state.site?.broken.find((file) => file.file === entry.file);
  const rootName = state.site?.root ?? "";
  fill(page, routeHead({ entry, crumbs: crumbs(entry.folders), rootName, broken }));
  const options = {
    origin: apiRoot,
    logLink: (id) => log?.link(id) ?? null,
    onAnswer: (answer) => log?.answered({ method: entry.method, ...answer }),
  };
  if (hasOperation(entry)) operation.show(state.openapi, entry).catch(showFailure);
  if (entry.kind === "socket") console_ = socketConsole(entry, options);
  if (entry.kind === "stream") console_ = eventConsole(entry, options);
  if (console_) {
    consoleHost.append(console_.element);
    const messages = messagesPart(entry);
    if (messages) consoleHost.append(messages);
  }
  else if (entry.kind === "operation" && entry.method === "GET") moreHost.append(undeclaredStream(entry, options));
}

/** A stream that its document does not declare would keep a try-out waiting for its end for ever. */
function undeclaredStream(entry, options) {
  const details = h("details", { class: "undeclared" }, h("summary", {}, "Listen to it as an event stream"));
  details.addEventListener("toggle", () => {
    if (console_) return;
    console_ = eventConsole(entry, options);
    details.append(console_.element);
  });
  return details;
}

function crumbs(names) {
  const parts = names.map((name, index) => {
    const path = names.slice(0, index + 1).join("/");
    return h("li", {}, h("a", { href: folderLink(path) }, name));
  });
  const start = h("li", {}, h("a", { href: startLink() }, state.site?.root ?? "All"));
  return h("nav", { class: "crumbs", "aria-label": "Folders" }, h("ol", {}, start, ...parts));
}

function showFailure(error) {
  fill(
    page,
    h("h1", {}, "The document could not be loaded"),
    h("p", { class: "notice bad" }, error.message),
    ...problems(state.site),
    h("button", { type: "button", onclick: () => begin() }, "Try again"),
  );
}

async function begin() {
  const wanted = new URLSearchParams(location.hash.slice(1)).get("doc");
  const known = config.documents.find((each) => each.name === wanted);
  try {
    await load((known ?? config.documents[0]).name);
    await follow({ again: true });
  } catch (error) {
    showFailure(error);
  }
  document.body.dataset.ready = "true";
  performance.mark("docs-ready");
  // The next thing that most readers do is to open a route.
  (window.requestIdleCallback ?? setTimeout)(() => loadSwagger(config.assets).catch(() => null));
}

begin();
