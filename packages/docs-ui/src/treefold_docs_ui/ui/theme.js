// Before the first paint: the colours that the reader chose last, else those of the system.
// A classic script on purpose; a module would run after the page has been shown.
(() => {
  const root = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)");
  const KEY = "treefold-docs-theme";

  function chosen() {
    try {
      return localStorage.getItem(KEY);
    } catch {
      return null; // storage is switched off
    }
  }

  function apply() {
    const choice = chosen();
    const dark = choice ? choice === "dark" : system.matches;
    root.dataset.theme = dark ? "dark" : "light";
    dispatchEvent(new Event("theme"));
  }

  window.toggleTheme = () => {
    const next = root.dataset.theme === "dark" ? "light" : "dark";
    try {
      localStorage.setItem(KEY, next);
    } catch {
      root.dataset.theme = next;
    }
    apply();
  };
  system.addEventListener("change", apply);
  apply();
})();
