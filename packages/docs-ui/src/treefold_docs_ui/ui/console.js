// What both consoles share: the fields of an address, and a list of what was said, oldest first.

import { field, h } from "./dom.js";
import { filled, pathParameters } from "./model.js";

const KEPT = 500; // lines; the oldest go

/** Fields for the parameters of a path and for the query; `address()` gives what they make. */
export function addressFields(entry) {
  const inPath = pathParameters(entry.url).map((name) => {
    const known = entry.parameters.find((each) => each.place === "path" && each.name === name);
    return [name, declared({ ...known, name, schema: { default: undefined, type: name }, required: true })];
  });
  const asked = entry.parameters.filter(({ place }) => place === "query").map((each) => [each.name, declared(each)]);
  const query = field(asked.length ? "More of the query" : "Query", { placeholder: "name=value&…" });
  return {
    elements: [...inPath, ...asked].map(([, { element }]) => element).concat(query.element),
    address() {
      const values = Object.fromEntries(inPath.map(([name, { input }]) => [name, input.value]));
      const given = asked.map(([name, { input }]) => [name, input.value]).filter(([, value]) => value !== "");
      const text = [new URLSearchParams(given).toString(), query.input.value.replace(/^\?/, "")];
      const joined = text.filter(Boolean).join("&");
      return filled(entry.url, values) + (joined ? `?${joined}` : "");
    },
  };
}

/** A field for a parameter of the document: what it is by default stands in it as a hint. */
function declared({ name, schema, required, description }) {
  const usual = schema.default === undefined ? (schema.type ?? "") : JSON.stringify(schema.default);
  const made = field(name, { placeholder: String(usual), required, title: description || null });
  if (description) made.element.append(h("small", {}, description));
  return made;
}

/** A list that follows its end, unless the reader has scrolled up. */
export function transcript(label) {
  const element = h("div", { class: "transcript", role: "log", "aria-label": label, tabindex: "0" });
  return {
    element,
    add(direction, text, extra = null) {
      const atEnd = element.scrollTop + element.clientHeight >= element.scrollHeight - 8;
      const time = new Date().toLocaleTimeString(undefined, { hour12: false });
      const sign = { in: "←", out: "→", note: "·", error: "!" }[direction];
      element.append(
        h(
          "div",
          { class: `line ${direction}` },
          h("time", {}, time),
          h("span", { class: "sign", "aria-hidden": "true" }, sign),
          h("pre", {}, text),
          extra,
        ),
      );
      while (element.childElementCount > KEPT) element.firstElementChild.remove();
      if (atEnd) element.scrollTop = element.scrollHeight;
    },
    clear: () => element.replaceChildren(),
  };
}

/** JSON with line breaks where it is JSON, else the text itself. */
export function pretty(text) {
  if (!/^\s*[[{]/.test(text)) return text;
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}
