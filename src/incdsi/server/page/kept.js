// What the browser keeps for us; a browser that keeps nothing forgets it with the page.

function shelf(storage) {
  const memory = new Map();
  return {
    get(name) {
      try {
        return storage().getItem(name) ?? memory.get(name) ?? null;
      } catch {
        return memory.get(name) ?? null;
      }
    },
    set(name, value) {
      memory.set(name, value);
      try {
        storage().setItem(name, value);
      } catch {
        // kept in memory
      }
    },
  };
}

/** Until the tab is closed. */
export const inTab = shelf(() => sessionStorage);
/** For good. */
export const inBrowser = shelf(() => localStorage);
