// A console for a WebSocket: connect, send, see what comes, see how it ended.

import { field, h } from "./dom.js";
import { addressFields, pretty, transcript } from "./console.js";

/** Give the element of a console for an entry, and `close()` for when the reader goes on. */
export function socketConsole(entry, { origin }) {
  const address = addressFields(entry);
  const protocols = field("Subprotocols", { name: "protocols", placeholder: "a, b" });
  const message = field("Message", { name: "message", rows: "3", placeholder: "Text or JSON" }, "textarea");
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
    mine.binaryType = "arraybuffer";
    show("Connecting…", "Disconnect", false);
    mine.addEventListener("open", () => {
      const chosen = mine.protocol ? ` with subprotocol ${mine.protocol}` : "";
      said.add("note", `Connected to ${new URL(url).pathname}${chosen}`);
      show("Connected", "Disconnect", true);
      message.input.focus();
    });
    mine.addEventListener("message", (event) => {
      if (typeof event.data === "string") said.add("in", pretty(event.data));
      else said.add("in", `${event.data.byteLength} bytes: ${hexadecimal(event.data)}`);
    });
    mine.addEventListener("close", (event) => {
      const reason = event.reason ? `: ${event.reason}` : "";
      said.add(event.code === 1000 ? "note" : "error", `Closed with code ${event.code}${reason}`);
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
    socket.send(message.input.value);
    said.add("out", pretty(message.input.value));
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

function hexadecimal(buffer) {
  const bytes = [...new Uint8Array(buffer.slice(0, 64))];
  const text = bytes.map((byte) => byte.toString(16).padStart(2, "0")).join(" ");
  return buffer.byteLength > bytes.length ? `${text} …` : text;
}
