// A console for a WebSocket: connect, send, see what comes, see how it ended.

import { field, h } from "./dom.js";
import { addressFields, pretty, transcript } from "./console.js";
import { firstMessage, framesOf } from "./messages.js";

const REFUSED = "the server is away, or it refused the connection";

/** Give the element of a console for an entry, and `close()` for when the reader goes on. */
export function socketConsole(entry, { origin }) {
  const address = addressFields(entry);
  const protocols = field("Subprotocols", { name: "protocols", placeholder: "a, b" });
  const message = field("Message", { name: "message", rows: "3" }, "textarea");
  message.input.value = firstMessage(entry);
  const frames = framesOf(entry);
  const frame = field("Send as", { name: "frame" }, "select");
  frame.input.append(...frames.map((words) => h("option", {}, words)));
  frame.element.hidden = frames.length === 1 && frames[0] === "Text";
  frame.input.addEventListener("change", nameFormat);
  nameFormat();
  const said = transcript("Messages");
  const toggle = h("button", { type: "submit", class: "primary" }, "Connect");
  const send = h("button", { type: "submit", disabled: true }, "Send");
  const state = h("span", { class: "state", role: "status" }, "Not connected");
  let socket = null;

  const connecting = h(
    "form",
    { class: "fields", onsubmit: (event) => (event.preventDefault(), socket ? close() : connect()) },
    address.elements,
    protocols.element,
    h("div", { class: "actions" }, toggle, state),
  );
  const sending = h(
    "form",
    { class: "fields", onsubmit: submit },
    frame.element,
    message.element,
    h(
      "div",
      { class: "actions" },
      send,
      h("span", { class: "muted" }, "Ctrl + Enter sends"),
      h("button", { type: "button", class: "quiet", onclick: said.clear }, "Clear"),
    ),
  );
  message.input.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) sending.requestSubmit();
  });

  function nameFormat() {
    message.input.placeholder = frame.input.value === "Text" ? "Text or JSON" : "0a ff";
  }

  function connect() {
    const url = origin.replace(/^http/, "ws") + address.address();
    const names = protocols.input.value.split(",").map((name) => name.trim()).filter(Boolean);
    try {
      socket = new WebSocket(url, names);
    } catch (error) {
      said.add("error", error.message);
      return;
    }
    const mine = socket;
    let opened = false;
    mine.binaryType = "arraybuffer";
    show("Connecting…", "Disconnect", false);
    mine.addEventListener("open", () => {
      opened = true;
      const chosen = mine.protocol ? ` with subprotocol ${mine.protocol}` : "";
      said.add("note", `Connected to ${new URL(url).pathname}${chosen}`);
      show("Connected", "Disconnect", true);
      message.input.focus();
    });
    mine.addEventListener("message", (event) => {
      said.add("in", typeof event.data === "string" ? pretty(event.data) : hexadecimal(event.data));
    });
    mine.addEventListener("close", (event) => {
      const reason = event.reason || (event.code === 1006 && !opened ? REFUSED : "");
      said.add(event.code === 1000 ? "note" : "error", `Closed with code ${event.code}${reason && `: ${reason}`}`);
      if (socket !== mine) return;
      socket = null;
      show("Not connected", "Connect", false);
    });
  }

  function show(words, action, ready) {
    state.textContent = words;
    state.classList.toggle("on", ready);
    toggle.textContent = action;
    send.disabled = !ready;
  }

  function submit(event) {
    event.preventDefault();
    if (socket?.readyState !== WebSocket.OPEN) return;
    if (frame.input.value === "Text") {
      socket.send(message.input.value);
      said.add("out", pretty(message.input.value));
    } else {
      const bytes = bytesOf(message.input.value);
      if (bytes === null) {
        said.add("error", "Write bytes as pairs of hexadecimal digits, such as 0a ff");
        return;
      }
      socket.send(bytes);
      said.add("out", hexadecimal(bytes.buffer));
    }
    message.input.select();
  }

  function close() {
    socket?.close(1000);
  }

  const element = h(
    "section",
    { class: "console", "aria-label": "WebSocket console" },
    h("h2", {}, "WebSocket console"),
    connecting,
    said.element,
    sending,
  );
  return { element, close };
}

/** The bytes of pairs of digits; null where the text is something else. */
function bytesOf(text) {
  const digits = text.replace(/\s/g, "");
  if (!/^([0-9a-f]{2})*$/i.test(digits)) return null;
  return Uint8Array.from(digits.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16));
}

function hexadecimal(buffer) {
  const bytes = [...new Uint8Array(buffer.slice(0, 64))];
  const text = bytes.map((byte) => byte.toString(16).padStart(2, "0")).join(" ");
  return `${buffer.byteLength} bytes: ${text}${buffer.byteLength > bytes.length ? " …" : ""}`;
}
