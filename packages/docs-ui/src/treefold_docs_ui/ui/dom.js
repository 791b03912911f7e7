// Elements and text, nothing else. What a document says becomes a text node or an attribute value
// here, and is never parsed as markup: there is no innerHTML in this folder, and a test sees to it.

/** Make an element; keys that start with `on` are listeners, null and false leave the key out. */
export function h(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.flat(2).filter((child) => child !== null && child !== undefined));
  return element;
}

/** Put children in the place of those that are there. */
export function fill(element, ...children) {
  element.replaceChildren(...children.flat().filter((child) => child !== null));
  return element;
}

/** A method as a small coloured word; the word alone says it too. */
export function badge(method) {
  const word = { WEBSOCKET: "WS", EVENTS: "SSE" }[method] ?? method;
  const known = /^(GET|POST|PUT|PATCH|DELETE|WEBSOCKET|EVENTS)$/.test(method);
  return h("span", { class: `badge ${known ? method.toLowerCase() : "other"}`, title: method }, word);
}

/** A labelled input. */
export function field(label, attributes, tag = "input") {
  const input = h(tag, { autocomplete: "off", spellcheck: "false", ...attributes });
  return { input, element: h("label", { class: "field" }, h("span", {}, label), input) };
}

/** The text as paragraphs, lists and code; everything else of a markup language stays as written. */
export function blocks(text) {
  const found = [];
  const parts = String(text ?? "").split(/^```.*$/m);
  parts.forEach((part, index) => {
    if (index % 2) {
      found.push({ kind: "code", text: part.replace(/^\n|\n$/g, "") });
      return;
    }
    for (const paragraph of part.split(/\n\s*\n/)) {
      const lines = paragraph.trim().split("\n");
      if (!lines[0]) continue;
      if (lines.every((line) => /^\s*[-*] /.test(line))) {
        found.push({ kind: "list", items: lines.map((line) => line.replace(/^\s*[-*] /, "")) });
      } else found.push({ kind: "paragraph", text: lines.join("\n") });
    }
  });
  return found;
}

/** Inline code and plain text, in turns. */
export function runs(text) {
  return text.split(/`([^`\n]+)`/).map((part, index) => ({ code: index % 2 === 1, text: part }));
}

/** Draw a text with `make(tag, attributes, ...children)`: elements of the page, or of React. */
export function prose(text, make = h) {
  const line = (part) => runs(part).map((run) => (run.code ? make("code", {}, run.text) : run.text));
  return blocks(text).map((block) => {
    if (block.kind === "code") return make("pre", { tabIndex: 0 }, make("code", {}, block.text));
    if (block.kind === "paragraph") return make("p", {}, ...line(block.text));
    return make("ul", {}, ...block.items.map((item) => make("li", {}, ...line(item))));
  });
}
