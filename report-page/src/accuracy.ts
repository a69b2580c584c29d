/** The charts: a switch for each thing that can vary, a panel for each data set. */

import { choice } from "./controls";
import { drawCurves } from "./curves";
import { distinct, isLevel, type Result } from "./data";
import { atWidth, h } from "./dom";
import { levelLook, type Look, lookOf, swatch } from "./series";

export interface Accuracy {
  element: HTMLElement;
  /** Show this scope, if it was measured. */
  open(scope: string): void;
}

export function accuracy(results: Result[]): Accuracy {
  const grouped = (mechanism: string): Result[] => results.filter((row) => row.mechanism === mechanism);
  const mechanisms = distinct(results, (row) => row.mechanism);
  const [curves, levels] = [false, true].map((level) => mechanisms.filter((m) => isLevel(grouped(m)) === level)) as [string[], string[]];
  const looks = new Map([
    ...curves.map((mechanism, i) => [mechanism, lookOf(i)] as const),
    ...levels.map((mechanism, i) => [mechanism, levelLook(i)] as const),
  ]);
  const hidden = new Set<string>();

  const experiment = choice<string>({ label: "Experiment", changed: (v) => show(v, undefined, undefined) });
  const metric = choice<string>({ label: "Measure", changed: (v) => show(state.experiment, v, undefined) });
  const scope = choice<string>({ label: "Over", changed: (v) => show(state.experiment, state.metric, v) });
  const state = { experiment: "", metric: "", scope: "" };

  const legend = h("div", { class: "legend", role: "group", "aria-label": "Show or hide mechanisms" });
  const key = h("p", { class: "key" });
  const panels = h("div", { class: "panels" });
  const redraws: (() => void)[] = [];

  function show(wanted: string, wantedMetric: string | undefined, wantedScope: string | undefined): void {
    state.experiment = wanted;
    const inside = results.filter((row) => row.experiment === wanted);
    const offered = metric.offer(distinct(inside, (row) => row.metric));
    state.metric = wantedMetric ?? offered;
    state.scope = scope.offer(scopes(), wantedScope);
    redraw();
  }

  function scopes(): string[] {
    const measured = results.filter((row) => row.experiment === state.experiment && row.metric === state.metric);
    return distinct(measured, (row) => row.scope);
  }

  function redraw(): void {
    const rows = results.filter(
      (row) =>
        row.experiment === state.experiment && row.metric === state.metric && row.scope === state.scope,
    );
    drawLegend(distinct(rows, (row) => row.mechanism));
    key.textContent = [
      rows.some((row) => row.low < row.high) ? "Bands: confidence intervals." : "",
      rows.some((row) => row.paper_value !== null) ? "Hollow markers: the paper's values." : "",
      "Grey lines without markers: no budget is charged, or there is no privacy.",
      "Point at a marker, or use the arrow keys on a chart, for the numbers.",
    ].join(" ");
    redraws.length = 0;
    const datasets = distinct(rows, (row) => row.dataset);
    panels.replaceChildren(...datasets.map((dataset) => panel(dataset, rows)));
  }

  function panel(dataset: string, rows: Result[]): HTMLElement {
    const own = rows.filter((row) => row.dataset === dataset);
    const label = `${dataset}: ${state.metric}, ${state.scope}`;
    const holder = h("div", { class: "chart", tabindex: 0, role: "group", "aria-label": `Chart. ${label}. Arrow keys move over the points.` });
    let width = 0;
    const draw = (): void => {
      const visible = own.filter((row) => !hidden.has(row.mechanism));
      const empty = h("p", { class: "empty" }, "All mechanisms are hidden.");
      if (!visible.length) holder.replaceChildren(empty);
      else drawCurves(holder, width, { rows: visible, looks, label });
    };
    redraws.push(draw);
    atWidth(holder, (now) => {
      width = now;
      draw();
    });
    return h(
      "figure",
      { class: "panel" },
      h(
        "figcaption",
        {},
        h("strong", {}, dataset),
        h("span", {}, `${state.metric} · ${state.scope}`),
      ),
      holder,
      h("p", { class: "axis" }, "privacy loss ε (log) →"),
    );
  }

  function drawLegend(mechanisms: string[]): void {
    legend.replaceChildren(
      ...mechanisms.map((mechanism) => {
        const look = looks.get(mechanism) as Look;
        const button = h(
          "button",
          {
            type: "button",
            "aria-pressed": String(!hidden.has(mechanism)),
            click: () => {
              if (!hidden.delete(mechanism)) hidden.add(mechanism);
              button.setAttribute("aria-pressed", String(!hidden.has(mechanism)));
              redraws.forEach((draw) => draw());
            },
          },
          swatch(look),
          h("span", {}, mechanism),
        );
        return button;
      }),
    );
  }

  const first = experiment.offer(distinct(results, (row) => row.experiment));
  show(first, undefined, undefined);
  const element = h(
    "div",
    { class: "accuracy" },
    h("div", { class: "controls" }, experiment.element, metric.element, scope.element),
    panels,
    legend,
    key,
  );
  return {
    element,
    open(wanted) {
      if (wanted !== state.scope && scopes().includes(wanted)) show(state.experiment, state.metric, wanted);
    },
  };
}
