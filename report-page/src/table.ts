/** The table of all numbers: sorted by any column, filtered, and to take away as CSV. */

import { choice } from "./controls";
import { distinct, figure, plain, type Result } from "./data";
import { h } from "./dom";

const FIRST = 60;
const ALL = "all";

interface Column {
  key: keyof Result;
  title: string;
  number: boolean;
}

const COLUMNS: Column[] = [
  { key: "experiment", title: "experiment", number: false },
  { key: "dataset", title: "data set", number: false },
  { key: "mechanism", title: "mechanism", number: false },
  { key: "epsilon", title: "ε", number: true },
  { key: "metric", title: "measure", number: false },
  { key: "scope", title: "over", number: false },
  { key: "mean", title: "mean", number: true },
  { key: "low", title: "low", number: true },
  { key: "high", title: "high", number: true },
  { key: "paper_value", title: "paper", number: true },
  { key: "n_sources", title: "sources", number: true },
  { key: "repeats", title: "repeats", number: true },
];

export function numbers(results: Result[]): HTMLElement {
  const columns = COLUMNS.filter(({ key }) => results.some((row) => row[key] !== null && row[key] !== ""));
  const state = { dataset: ALL, metric: ALL, sort: -1, falling: false, whole: false };
  const dataset = choice<string>({ label: "Data set", changed: (v) => update({ dataset: v }) });
  const metric = choice<string>({ label: "Measure", changed: (v) => update({ metric: v }) });
  const body = h("tbody");
  const more = h("button", { type: "button", class: "plain", click: () => update({ whole: true }) });
  const count = h("span", { class: "quiet", "aria-live": "polite" });
  const heads = columns.map((column, i) =>
    h(
      "th",
      { scope: "col", class: column.number ? "number" : undefined },
      h(
        "button",
        { type: "button", click: () => update({ sort: i, falling: state.sort === i && !state.falling }) },
        column.title,
      ),
    ),
  );
  const download = h("a", {
    class: "button",
    href: "#numbers",
    download: "edgeveil-numbers.csv",
    click: (event) => {
      const link = event.currentTarget as HTMLAnchorElement;
      const file = new Blob([asCsv(chosen())], { type: "text/csv;charset=utf-8" });
      link.href = URL.createObjectURL(file);
      setTimeout(() => {
        URL.revokeObjectURL(link.href);
        link.href = "#numbers";
      }, 2000);
    },
  });

  function chosen(): Result[] {
    const rows = results.filter(
      (row) =>
        (state.dataset === ALL || row.dataset === state.dataset) &&
        (state.metric === ALL || row.metric === state.metric),
    );
    const column = columns[state.sort];
    return column ? rows.sort((a, b) => (state.falling ? -1 : 1) * compare(a[column.key], b[column.key])) : rows;
  }

  function update(change: Partial<typeof state>): void {
    Object.assign(state, change);
    heads.forEach((head, i) => {
      if (i === state.sort) head.setAttribute("aria-sort", state.falling ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    });
    const rows = chosen();
    const shown = state.whole ? rows : rows.slice(0, FIRST);
    body.replaceChildren(
      ...shown.map((row) =>
        h(
          "tr",
          {},
          ...columns.map((column) =>
            h("td", column.number ? { class: "number" } : { title: cell(row, column) }, cell(row, column)),
          ),
        ),
      ),
    );
    more.hidden = shown.length === rows.length;
    more.textContent = `Show all ${rows.length} rows`;
    count.textContent = rows.length === 1 ? "1 row" : `${rows.length} rows`;
    download.textContent = rows.length === results.length ? "Download as CSV" : "Download these rows as CSV";
  }

  dataset.offer([ALL, ...distinct(results, (row) => row.dataset)]);
  metric.offer([ALL, ...distinct(results, (row) => row.metric)]);
  for (const control of [dataset, metric]) {
    if (control.element.querySelectorAll("input, option").length < 3) control.element.hidden = true;
  }
  update({});
  return h(
    "div",
    { class: "numbers" },
    h("div", { class: "controls" }, dataset.element, metric.element, h("div", { class: "take" }, count, download)),
    h(
      "div",
      { class: "scroll", tabindex: 0, role: "region", "aria-label": "Table of all numbers" },
      h("table", {}, h("thead", {}, h("tr", {}, ...heads)), body),
    ),
    more,
  );
}

function cell(row: Result, column: Column): string {
  const value = row[column.key];
  if (value === null) return "–";
  if (column.key === "epsilon") return plain(value as number);
  if (column.key === "n_sources" || column.key === "repeats") return String(value);
  return typeof value === "number" ? figure(value) : value;
}

/** Missing values first; numbers as numbers, words as words. */
function compare(a: string | number | null, b: string | number | null): number {
  if (a === null || b === null) return Number(a !== null) - Number(b !== null);
  if (typeof a === "number" && typeof b === "number") return a - b;
  return String(a).localeCompare(String(b), undefined, { numeric: true });
}

/** RFC 4180, full precision. A text that a spreadsheet would run as a formula gets a quote. */
function asCsv(rows: Result[]): string {
  const text = (value: string): string => {
    const safe = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
    return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
  };
  const line = (values: (string | number | null)[]): string =>
    values.map((value) => (typeof value === "string" ? text(value) : (value ?? ""))).join(",");
  const keys = COLUMNS.map((column) => column.key);
  return `${[line(keys), ...rows.map((row) => line(keys.map((key) => row[key])))].join("\r\n")}\r\n`;
}
