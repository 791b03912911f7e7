// A console for an event stream. Read with fetch, not EventSource: a header can be sent, the status
// and the request id can be seen, and a stream that ended is not asked for again by itself.

import { ask } from "./away.js";
import { field, h } from "./dom.js";
import { addressFields, pretty, transcript } from "./console.js";

/** Give the element of a console for an entry, and `close()` for when the reader goes on. */
export function eventConsole(entry, { origin, onAnswer, logLink }) {
  const address = addressFields(entry);
  const headers = field(
    "Headers",
    { name: "headers", rows: "2", placeholder: "Authorization: Bearer …\nLast-Event-ID: 42" },
    "textarea",
  );
  const asked = entry.parameters.filter(({ place }) => place === "header");
  headers.input.value = asked.map(({ name }) => `${name}: `).join("\n");
  const said = transcript("Events");
  const toggle = h("button", { type: "submit", class: "primary" }, "Listen");
  const state = h("span", { class: "state", role: "status" }, "Not listening");
  let reading = null;

  const form = h(
    "form",
    { class: "fields", onsubmit: (event) => (event.preventDefault(), reading ? close() : listen()) },
    address.elements,
    headers.element,
    h(
      "div",
      { class: "actions" },
      toggle,
      state,
      h("button", { type: "button", class: "quiet", onclick: said.clear }, "Clear"),
    ),
  );

  async function listen() {
    const mine = (reading = new AbortController());
    show("Connecting…", "Stop", false);
    try {
      const answer = await ask(origin + address.address(), {
        headers: { Accept: "text/event-stream", ...headersOf(headers.input.value) },
        signal: mine.signal,
        cache: "no-store",
      });
      const id = answer.headers.get("x-request-id");
      const type = answer.headers.get("content-type") ?? "";
      onAnswer({ path: new URL(answer.url).pathname, status: answer.status, id });
      const good = answer.ok && type.startsWith("text/event-stream");
      said.add(good ? "note" : "error", `${answer.status} ${type}`, logLink(id));
      if (good) show("Listening", "Stop", true);
      if (good) await read(answer.body, (event) => said.add("in", worded(event))).catch(brokenOff);
      else said.add("in", pretty(await answer.text()));
      said.add("note", "The stream has ended");
    } catch (error) {
      said.add(mine.signal.aborted ? "note" : "error", mine.signal.aborted ? "Stopped" : error.message);
    }
    if (reading !== mine) return;
    reading = null;
    show("Not listening", "Listen", false);
  }

  function show(words, action, on) {
    state.textContent = words;
    state.classList.toggle("on", on);
    toggle.textContent = action;
  }

  function close() {
    reading?.abort();
  }

  const element = h(
    "section",
    { class: "console", "aria-label": "Event stream console" },
    h("h2", {}, "Event stream console"),
    form,
    said.element,
  );
  return { element, close };
}

function brokenOff(error) {
  if (error.name === "AbortError") throw error;
  throw new Error("The stream broke off: the server is away", { cause: error });
}

function headersOf(text) {
  const lines = text.split("\n").filter((line) => line.trim());
  return Object.fromEntries(lines.map((line) => {
    const [name, ...value] = line.split(":");
    return [name.trim(), value.join(":").trim()];
  }));
}

function worded({ event, id, data }) {
  const head = [event && `event ${event}`, id && `id ${id}`].filter(Boolean).join(", ");
  return head ? `${head}\n${pretty(data)}` : pretty(data);
}

/** Read server-sent events (WHATWG HTML, 9.2) from a body until it ends. */
export async function read(body, onEvent) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  let open = {};
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const lines = (rest + value).split(/\r\n|\n|\r(?!$)/);
    rest = lines.pop();
    for (const line of lines) open = take(line, open, onEvent);
  }
}

function take(line, open, onEvent) {
  if (line === "") {
    if (open.data !== undefined) onEvent(open);
    return {};
  }
  const colon = line.indexOf(":");
  if (colon === 0) return open; // a comment
  const name = colon < 0 ? line : line.slice(0, colon);
  const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
  if (name === "data") return { ...open, data: open.data === undefined ? value : `${open.data}\n${value}` };
  if (name === "event" || name === "id") return { ...open, [name]: value };
  return open;
}
