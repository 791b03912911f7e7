// The edge of a drawer at the foot of the page: pulled with the pointer, or moved with the arrows.

import { h } from "./dom.js";

const LEAST = 120;
const STEP = 40;

/** Make the edge of `drawer`; it keeps a part of the page free for what is above. */
export function resizeEdge(drawer, label) {
  const edge = h("div", {
    class: "edge",
    role: "separator",
    "aria-label": label,
    "aria-orientation": "horizontal",
    "aria-valuemin": LEAST,
    tabindex: "0",
  });

  edge.addEventListener("pointerdown", (event) => {
    edge.setPointerCapture(event.pointerId);
    event.preventDefault();
    edge.focus();
  });
  edge.addEventListener("pointermove", (event) => {
    if (edge.hasPointerCapture(event.pointerId)) resize(innerHeight - event.clientY);
  });
  edge.addEventListener("keydown", (event) => {
    const height = drawer.offsetHeight;
    const wanted = { ArrowUp: height + STEP, ArrowDown: height - STEP, Home: LEAST, End: innerHeight }[event.key];
    if (wanted === undefined) return;
    event.preventDefault();
    resize(wanted);
  });
  addEventListener("resize", () => drawer.style.height && resize(drawer.offsetHeight));

  function resize(wanted) {
    const most = Math.max(LEAST, innerHeight - 2 * LEAST);
    const height = Math.round(Math.min(Math.max(wanted, LEAST), most));
    drawer.style.height = `${height}px`;
    say(height, most);
  }

  /** What the edge stands at, for readers who do not see it. */
  function say(height = drawer.offsetHeight, most = Math.max(LEAST, innerHeight - 2 * LEAST)) {
    edge.setAttribute("aria-valuemax", most);
    edge.setAttribute("aria-valuenow", height);
  }

  return { edge, say };
}
