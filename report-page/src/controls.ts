/** Switches, pickers and the slider: native inputs, so that keyboards and readers work. */

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

/** Up to four options side by side, more in a list; hidden when there is nothing to choose. */
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
      const few = options.length <= 4 && letters <= 34;
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

/** A slider over the epsilons that are there; its words say the value, not the step. */
export function slider({ label, text = String, changed }: Options<number>): Control<number> {
  const id = fresh("slider");
  const output = h("output", { for: id });
  const input = h("input", {
    id,
    type: "range",
    min: 0,
    step: 1,
    input: () => {
      say();
      changed(value());
    },
  });
  const marks = h("div", { class: "marks", "aria-hidden": true });
  const element = h(
    "div",
    { class: "slider" },
    h("label", { for: id }, label, " ", output),
    input,
    marks,
  );
  let steps: readonly number[] = [];

  const value = (): number => steps[Number(input.value)] as number;

  function say(): void {
    const words = text(value());
    output.textContent = words;
    input.setAttribute("aria-valuetext", `${label} ${words}`);
  }

  return {
    element,
    offer(options, wanted) {
      const middle = options[Math.floor(options.length / 2)] as number;
      const aim = wanted ?? (steps.length ? value() : middle);
      if (!same(options, steps)) {
        steps = options;
        input.max = String(options.length - 1);
        input.disabled = options.length < 2;
        const every = Math.ceil(options.length / 9); // more numbers than that would touch
        marks.replaceChildren(
          ...options.map((step, i) => h("span", {}, i % every === 0 ? text(step) : "")),
        );
        marks.hidden = options.length < 2;
      }
      const distances = steps.map((step) => Math.abs(step - aim));
      input.value = String(distances.indexOf(Math.min(...distances)));
      say();
      return value();
    },
  };
}
