// Elements from data, always as text: nothing here reads HTML.

export const byId = (id) => document.getElementById(id);

/**
 * An element with attributes and children; strings become text nodes, null and false are left out.
 * @param {string} tag
 * @param {Record<string, string | number | boolean | Function | null | undefined>} [attributes] `onclick` and the like are listeners
 * @param {...(Node | string | null | false | undefined)} children
 */
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** One of the page's own icons, beside a text that says the same. */
export function icon(name) {
  const svg = vector("svg", { class: "icon", "aria-hidden": "true" });
  svg.append(vector("use", { href: `#${name}` }));
  return svg;
}

/** An SVG element; children are appended by the caller. */
export function vector(tag, attributes = {}) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  return element;
}

export const calm = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

/** Whether typing now goes into a field. */
export function typing(target) {
  return target instanceof HTMLElement && target.matches("input:not([type=radio], [type=checkbox]), textarea, select");
}
