// What both consoles share: the fields of an address, and a list of what was said, oldest first.

import { field, h } from "./dom.js";
import { filled, pathParameters } from "./model.js";

const KEPT = 500; // lines; the oldest go

/** Fields for the parameters of a path and for the query; `address()` gives what they make. */
export function addressFields(entry) {
  const inputs = new Map();
  const elements = pathParameters(entry.url).map((name) => {
    const { input, element } = field(name, { name, placeholder: name, required: true });
    inputs.set(name, input);
    return element;
  });
  const query = field("Query", { name: "?", placeholder: "name=value&…" });
  return {
    elements: [...elements, query.element],
    address() {
      const values = Object.fromEntries([...inputs].map(([name, input]) => [name, input.value]));
      const text = query.input.value.replace(/^\?/, "");
      return filled(entry.url, values) + (text ? `?${text}` : "");
    },
  };
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
