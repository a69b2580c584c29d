/** What a ledger has given out: in words, over time, and every charge. */

import * as Plot from "@observablehq/plot";

import { plain, type Spending } from "./data";
import { atWidth, h } from "./dom";

const HALF_DAY = 12 * 3600_000;

export function spending({ words, cap, steps, columns, rows }: Spending): HTMLElement {
  const said = words.map((text) => h("p", {}, text));
  if (!steps.length) return h("div", { class: "prose" }, ...said, h("p", {}, "Nothing was charged so far."));
  const chart = h("div", { class: "chart steps" });
  atWidth(chart, (width) => chart.replaceChildren(overTime(width, cap, steps)));
  return h(
    "div",
    {},
    h("p", { class: "quiet" }, "Highest epsilon charged to any member over time, and the cap."),
    chart,
    h("div", { class: "prose" }, ...said),
    h(
      "div",
      { class: "scroll", tabindex: 0, role: "region", "aria-label": "Every charge" },
      h(
        "table",
        { class: "spends" },
        h("thead", {}, h("tr", {}, ...columns.map((title) => h("th", { scope: "col" }, title.replaceAll("_", " "))))),
        h("tbody", {}, ...rows.map((row) => h("tr", {}, ...row.map((value, i) => cell(columns[i] as string, value))))),
      ),
    ),
  );
}

function cell(column: string, value: string | number | null): HTMLElement {
  if (typeof value === "number") return h("td", { class: "number" }, value.toLocaleString("en", { maximumFractionDigits: 9 }));
  return h("td", {}, column === "time" ? String(value).slice(0, 16).replace("T", " ") : (value ?? ""));
}

function overTime(width: number, cap: number, steps: [string, number][]): SVGElement | HTMLElement {
  const spent = steps.map(([time, total]) => ({ time: new Date(time), total }));
  const [first, last] = [spent[0] as (typeof spent)[0], spent.at(-1) as (typeof spent)[0]];
  const margin = Math.max((+last.time - +first.time) / 20, HALF_DAY);
  const [from, to] = [new Date(+first.time - margin), new Date(+last.time + margin)];
  const line = [{ time: from, total: 0 }, { time: first.time, total: 0 }, ...spent, { ...last, time: to }];
  const picture = Plot.plot({
    width,
    height: 220,
    marginLeft: 40,
    marginRight: 24,
    style: { fontSize: "12px", fontFamily: "inherit", overflow: "visible" },
    x: { domain: [from, to], label: null },
    y: { domain: [0, 1.1 * Math.max(cap, ...spent.map((one) => one.total))], label: null },
    marks: [
      Plot.gridY({ ticks: 4, stroke: "var(--grid)", strokeOpacity: 1 }),
      Plot.axisY({ label: null, tickSize: 0, ticks: 4, fill: "var(--muted)" }),
      Plot.axisX({ label: null, ticks: Math.max(2, Math.floor(width / 140)), fill: "var(--muted)", stroke: "var(--muted)" }),
      Plot.ruleY([cap], { stroke: "var(--warn)", strokeDasharray: "6 4" }),
      Plot.text([`cap ${plain(cap)}`], { x: () => from, y: cap, dy: -10, textAnchor: "start", fill: "var(--warn)" }),
      Plot.line(line, { x: "time", y: "total", curve: "step-after", stroke: "var(--accent)", strokeWidth: 2.5, className: "spent" }),
    ],
  });
  picture.setAttribute("role", "img");
  picture.setAttribute("aria-label", `Charged over time: ${plain(last.total)} of ${plain(cap)}`);
  return picture;
}
