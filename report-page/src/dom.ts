/** Elements from text and attributes. Nothing here, or anywhere on the page, parses HTML. */

export type Child = Node | string | null | undefined | false;
type Attribute = string | number | boolean | ((event: Event) => void) | undefined;

export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Record<string, Attribute> = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  return fill(document.createElement(tag), attributes, children);
}

export function svg<K extends keyof SVGElementTagNameMap>(
  tag: K,
  attributes: Record<string, Attribute> = {},
  ...children: Child[]
): SVGElementTagNameMap[K] {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

function fill<E extends Element>(element: E, attributes: Record<string, Attribute>, children: Child[]): E {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== undefined) element.setAttribute(name, String(value));
  }
  element.append(...children.filter((child): child is Node | string => Boolean(child)));
  return element;
}

/** An id as text: isolated, so that right-to-left marks in it reorder nothing around it. */
export function name(text: string): HTMLElement {
  return h("bdi", { class: "id", title: text }, text);
}

export function shorten(text: string, length: number): string {
  const letters = Array.from(text);
  return letters.length <= length ? text : `${letters.slice(0, length - 1).join("")}…`;
}

let count = 0;

/** A fresh id for labels. */
export function fresh(stem: string): string {
  count += 1;
  return `${stem}-${count}`;
}

/** Call `draw` with the element's width now and whenever it changes. */
export function atWidth(element: HTMLElement, draw: (width: number) => void): void {
  let last = 0;
  new ResizeObserver(() => {
    const width = Math.floor(element.clientWidth);
    if (width > 0 && width !== last) {
      last = width;
      draw(width);
    }
  }).observe(element);
}
