// What goes over a socket or an event stream: each message with an example and its schema.

import { h } from "./dom.js";
import { nameOf, sampleOf, whole } from "./sample.js";

const BYTES = "application/octet-stream";
const WORDS = { receive: "You send", send: "You get" };

/** Give the part of the page that says it; null where the document says nothing. */
export function messagesPart(entry) {
  const described = entry.messages.filter(({ schema }) => schema && Object.keys(schema).length);
  if (!described.length) return null;
  return h(
    "section",
    { class: "messages", "aria-label": "Messages" },
    ["receive", "send"].flatMap((action) =>
      described.filter((message) => message.action === action).map((message) => part(message, entry.schemas)),
    ),
  );
}

/** A message to start from, for the first kind of JSON that can be sent; empty where there is none. */
export function firstMessage(entry) {
  const json = ({ action, type, schema }) =>
    action === "receive" && type.endsWith("json") && schema && Object.keys(schema).length;
  const found = entry.messages.find(json);
  return found ? JSON.stringify(sampleOf(found.schema, entry.schemas), null, 2) : "";
}

/** The kinds of frames that can be sent, as words for a choice; text where the document says nothing. */
export function framesOf(entry) {
  const types = entry.messages.filter(({ action }) => action === "receive").map(({ type }) => type);
  const bytes = types.includes(BYTES);
  const text = !bytes || types.some((type) => type !== BYTES);
  return [...(text ? ["Text"] : []), ...(bytes ? ["Bytes, in hexadecimal"] : [])];
}

function part({ action, type, schema }, schemas) {
  const name = nameOf(schema);
  const sample = sampleOf(schema, schemas);
  const text = typeof sample === "string" ? sample : JSON.stringify(sample, null, 2);
  return h(
    "div",
    { class: "message" },
    h("h2", {}, WORDS[action], name ? [" ", h("code", {}, name)] : null),
    h("p", { class: "muted" }, type),
    h("pre", { tabindex: "0", "aria-label": `Example: ${WORDS[action]}` }, text),
    h("details", {}, h("summary", {}, "Schema"), h("pre", { tabindex: "0" }, JSON.stringify(whole(schema, schemas), null, 2))),
  );
}
