/** Switches and pickers: native inputs, so that keyboards and readers work. */

import { fresh, h } from "./dom";

export interface Control<V> {
  element: HTMLElement;
  /** Offer these options; take the wanted one, or else keep the value; return what it is. */
  offer(options: readonly V[], wanted?: V): V;
}

interface Options<V> {
  label: string;
  text?: (value: V) => string;
  changed: (value: V) => void;
}

/** Few and short options side by side, others in a list; hidden when there is nothing to choose. */
export function choice<V>({ label, text = String, changed }: Options<V>): Control<V> {
  const element = h("fieldset", { class: "choice" });
  const group = fresh("choice");
  let now: V | undefined;
  let before: readonly V[] = [];

  function radios(options: readonly V[]): HTMLElement {
    return h(
      "div",
      { class: "segments" },
      ...options.map((option) =>
        h(
          "label",
          {},
          h("input", {
            type: "radio",
            name: group,
            checked: option === now,
            change: () => changed((now = option)),
          }),
          h("span", {}, text(option)),
        ),
      ),
    );
  }

  function list(options: readonly V[]): HTMLElement {
    return h(
      "select",
      {
        "aria-label": label,
        change: (event) => {
          now = options[(event.target as HTMLSelectElement).selectedIndex] as V;
          changed(now);
        },
      },
      ...options.map((option) => h("option", { selected: option === now }, text(option))),
    );
  }

  return {
    element,
    offer(options, wanted = now) {
      const value = options.find((option) => option === wanted) ?? (options[0] as V);
      if (value === now && same(options, before)) return value; // keeps the keyboard's focus
      [now, before] = [value, options];
      element.hidden = options.length < 2;
      const letters = options.reduce((sum, option) => sum + text(option).length, 0);
      const few = options.length <= 8 && letters <= 64;
      element.replaceChildren(
        h("legend", {}, label),
        few ? radios(options) : list(options),
      );
      return now;
    },
  };
}

const same = (a: readonly unknown[], b: readonly unknown[]): boolean =>
  a.length === b.length && a.every((value, i) => value === b[i]);
