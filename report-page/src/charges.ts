/** What a ledger has given out: in words, over time, and every charge. */

import * as Plot from "@observablehq/plot";

import { plain, type Charges } from "./data";
import { atWidth, h } from "./dom";

const HALF_DAY = 12 * 3600_000;

export function charges({ words, cap, steps, columns, rows }: Charges): HTMLElement {
  const said = words.map((text) => h("p", {}, text));
  if (!steps.length) return h("div", { class: "prose" }, ...said, h("p", {}, "Nothing was charged so far."));
  // A column without a word is not drawn; parameters stand below the mechanism's name.
  const parameters = columns.indexOf("parameters");
  const shown = columns.map((_, i) => i).filter((i) => i !== parameters && rows.some((row) => row[i] !== null && row[i] !== ""));
  const [time, members] = [columns.indexOf("time"), columns.indexOf("members")];
  const charged = rows.map((row): [string, string] => [String(row[time]), whom(row[members] ?? "")]);
  const chart = h("div", { class: "chart steps" });
  atWidth(chart, (width) => chart.replaceChildren(overTime(width, cap, steps, charged)));
  return h(
    "div",
    {},
    h("p", { class: "quiet" }, "Highest epsilon charged to any member over time, and the cap. A dot is a charge: of those who were there, or of newcomers."),
    chart,
    h("div", { class: "prose" }, ...said),
    h(
      "div",
      { class: "scroll", tabindex: 0, role: "region", "aria-label": "Every charge" },
      h(
        "table",
        { class: "charges" },
        h("thead", {}, h("tr", {}, ...shown.map((i) => head(columns[i] as string, typeof rows[0]?.[i])))),
        h("tbody", {}, ...rows.map((row) => h("tr", {}, ...shown.map((i) => cell(columns[i] as string, row[i] ?? null, row[parameters]))))),
      ),
    ),
  );
}

function head(column: string, kind: string): HTMLElement {
  return h("th", { scope: "col", class: kind === "number" ? "number" : undefined }, column.replaceAll("_", " "));
}

function cell(column: string, value: string | number | null, parameters: string | number | null | undefined): HTMLElement {
  if (typeof value === "number") return h("td", { class: "number" }, value.toLocaleString("en", { maximumFractionDigits: 9 }));
  if (column === "time") return h("td", { class: "time" }, String(value).slice(0, 16).replace("T", " "));
  if (column !== "mechanism") return h("td", {}, value);
  return h("td", { class: "mechanism" }, value, parameters ? h("div", { class: "quiet" }, inWords(String(parameters))) : null);
}

/** Parameters as `name value`, where they are an object; else as they were noted. */
function inWords(parameters: string): string {
  try {
    const found: unknown = JSON.parse(parameters);
    if (typeof found !== "object" || found === null) return parameters;
    return Object.entries(found).map(([key, value]) => `${key.replaceAll("_", " ")} ${typeof value === "string" ? value : JSON.stringify(value)}`).join(", ");
  } catch {
    return parameters;
  }
}

const whom = (members: string | number): string =>
  typeof members === "string" ? `${members} was charged` : members === 1 ? "1 member was charged" : `${members.toLocaleString("en")} members were charged`;

/** `charged` are the times of charges, and who was charged: newcomers do not move the line. */
function overTime(width: number, cap: number, steps: [string, number][], charged: [string, string][]): SVGElement | HTMLElement {
  const totals = steps.map(([time, total]) => ({ time: new Date(time), total }));
  const [first, last] = [totals[0] as (typeof totals)[0], totals.at(-1) as (typeof totals)[0]];
  const margin = Math.max((+last.time - +first.time) / 20, HALF_DAY);
  const [from, to] = [new Date(+first.time - margin), new Date(+last.time + margin)];
  const line = [{ time: from, total: 0 }, { time: first.time, total: 0 }, ...totals, { ...last, time: to }];
  const at = (when: Date): number => totals.filter(({ time }) => time <= when).at(-1)?.total ?? 0;
  const dots = charged.map(([when, words]) => ({ time: new Date(when), total: at(new Date(when)), words: `${when.slice(0, 10)}: ${words}` }));
  const picture = Plot.plot({
    width,
    height: 220,
    marginLeft: 40,
    marginRight: 24,
    style: { fontSize: "12px", fontFamily: "inherit", overflow: "visible" },
    x: { domain: [from, to], label: null },
    y: { domain: [0, 1.1 * Math.max(cap, ...totals.map((one) => one.total))], label: null },
    marks: [
      Plot.gridY({ ticks: 4, stroke: "var(--grid)", strokeOpacity: 1 }),
      Plot.axisY({ label: null, tickSize: 0, ticks: 4, fill: "var(--muted)" }),
      Plot.axisX({ label: null, ticks: Math.max(2, Math.floor(width / 140)), fill: "var(--muted)", stroke: "var(--muted)" }),
      Plot.ruleY([cap], { stroke: "var(--warn)", strokeDasharray: "6 4" }),
      Plot.text([`cap ${plain(cap)}`], { x: () => from, y: cap, dy: -10, textAnchor: "start", fill: "var(--warn)" }),
      Plot.line(line, { x: "time", y: "total", curve: "step-after", stroke: "var(--accent)", strokeWidth: 2.5, className: "total" }),
      Plot.dot(dots, { x: "time", y: "total", r: 4, fill: "var(--accent)", stroke: "var(--surface)", title: "words", className: "charged" }),
    ],
  });
  picture.setAttribute("role", "img");
  picture.setAttribute("aria-label", `Charged over time: ${plain(last.total)} of ${plain(cap)}`);
  return picture;
}
