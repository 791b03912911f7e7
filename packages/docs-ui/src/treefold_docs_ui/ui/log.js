// The log as it is written, and what was tried out: each answer leads to its line. Development only.

import { fill, h } from "./dom.js";
import { resizeEdge } from "./resize.js";

const KEPT = 1000;
const READ = /^\[INFO\] GET ([^ ?]+)|"method": ?"GET", ?"path": ?"([^"?]+)/;
const OTHER = / payload=|"payload":/; // every line of a request has it

/**
 * Make the drawer. Lines of GET requests to paths that `isOwn` are left out. `onBoot` is called when
 * a line came that is none of a request: the application may have changed.
 */
export function makeLog({ url, isOwn, onBoot }) {
  const lines = h("div", { class: "lines", role: "log", "aria-label": "Log lines", tabindex: "0" });
  const state = h("span", { class: "state", role: "status" }, "Connecting…");
  const tried = h("ul", { class: "tried", tabindex: "0", "aria-label": "Try-outs" });
  const none = h("p", { class: "muted" }, "Nothing tried out yet");
  const element = h(
    "section",
    { class: "log", "aria-label": "Log", hidden: true },
    h("div", { class: "tries" }, h("h2", {}, "Try-outs"), none, tried),
    h("div", { class: "live" }, h("h2", {}, "Log ", state), lines),
  );
  const { edge, say } = resizeEdge(element, "Height of the log");
  element.prepend(edge);
  let source = null;
  let following = true; // the reader has not scrolled away from the newest record
  let placed = 0; // where it was scrolled to for the reader
  let opened = false;
  let sought = null;
  let told = () => {};

  lines.addEventListener("scroll", () => {
    if (lines.clientHeight > 0 && lines.scrollTop !== placed) following = isAtEnd();
  });
  document.addEventListener("visibilitychange", () => (document.hidden ? stop() : start()));
  start();

  function start() {
    if (source) return;
    source = new EventSource(url);
    let first = true;
    source.addEventListener("open", () => {
      lines.replaceChildren();
      state.textContent = "live";
      state.classList.add("on");
      first = true;
      if (opened) onBoot(); // it was gone: perhaps another one is there now
      opened = true;
    });
    source.addEventListener("error", () => {
      state.textContent = "not connected";
      state.classList.remove("on");
    });
    source.addEventListener("message", (event) => {
      const batch = JSON.parse(event.data).map((line) => line.replace(/\n$/, ""));
      add(batch.filter((line) => !isOwn(READ.exec(line)?.slice(1).find(Boolean) ?? "")));
      if (!first && batch.some((line) => !OTHER.test(line))) onBoot();
      first = false;
    });
  }

  function stop() {
    source?.close();
    source = null;
  }

  function add(batch) {
    for (const line of batch) {
      const level = /^\[(\w+)\]|"level": ?"(\w+)"/.exec(line);
      const name = (level?.[1] ?? level?.[2] ?? "").toLowerCase();
      const known = /^(debug|info|warning|error|critical)$/.test(name) ? name : "";
      lines.append(h("div", { class: known }, line));
    }
    while (lines.childElementCount > KEPT) lines.firstElementChild.remove();
    if (sought) find(sought);
    else if (following) follow();
  }

  function isAtEnd() {
    return lines.scrollTop + lines.clientHeight >= lines.scrollHeight - 8;
  }

  /** Show the newest record: its end with those before it, or its first line where it is long. */
  function follow() {
    const last = lines.lastElementChild;
    if (last && last.offsetHeight > lines.clientHeight) startAt(last);
    else lines.scrollTop = lines.scrollHeight;
    placed = lines.scrollTop;
  }

  function startAt(record) {
    lines.scrollTop += record.getBoundingClientRect().top - lines.getBoundingClientRect().top;
  }

  function find(id) {
    let found = null;
    for (const line of lines.children) {
      const is = line.textContent.includes(`id=${id} `) || line.textContent.includes(`"${id}"`);
      line.classList.toggle("found", is);
      if (is) found = line;
    }
    sought = found ? null : id; // it may still be on its way
    if (found) startAt(found);
    return found !== null;
  }

  function show(visible) {
    element.hidden = !visible;
    told(visible);
    if (!visible) return;
    following = true;
    follow();
    say();
  }

  /** Show the line of a request. */
  function lead(id) {
    show(true);
    find(id);
  }

  /** A button that leads to the line of a request. */
  function link(id) {
    if (!id) return null;
    const shown = id.length > 12 ? `${id.slice(0, 12)}…` : id;
    const open = () => lead(id);
    return h(
      "button",
      { type: "button", class: "line-link", title: `Show the log line of ${id}`, onclick: open },
      shown,
    );
  }

  return {
    element,
    link,
    lead,
    onShow: (listener) => (told = listener),
    toggle: () => show(element.hidden),
    answered({ method, path, status, id }) {
      none.remove();
      const good = status < 400 ? "good" : "bad";
      tried.prepend(
        h("li", {}, h("span", { class: good }, String(status)), ` ${method} ${path} `, link(id)),
      );
      while (tried.childElementCount > 50) tried.lastElementChild.remove();
    },
  };
}
