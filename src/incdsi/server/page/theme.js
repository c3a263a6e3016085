// Light or dark: as the system says, until the visitor chooses. Not a module, so that it runs before the first paint.
(() => {
  const root = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)");

  function kept() {
    try {
      return localStorage.getItem("incdsi-theme");
    } catch {
      return null;
    }
  }

  function keep(theme) {
    try {
      localStorage.setItem("incdsi-theme", theme);
    } catch {
      // a browser that keeps nothing still shows it
    }
  }

  function show() {
    const dark = (kept() ?? (system.matches ? "dark" : "light")) === "dark";
    root.dataset.theme = dark ? "dark" : "light";
    const button = document.getElementById("theme");
    button?.setAttribute("aria-pressed", String(dark));
    button?.querySelector("use").setAttribute("href", dark ? "#sun" : "#moon");
    document.dispatchEvent(new CustomEvent("themechange"));
  }

  system.addEventListener("change", show);
  document.addEventListener("DOMContentLoaded", () => {
    document.getElementById("theme").addEventListener("click", () => {
      keep(root.dataset.theme === "dark" ? "light" : "dark");
      show();
    });
    show();
  });
  show();
})();
