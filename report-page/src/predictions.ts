/** Predicted classes: how often they are right, and which; and what is protected. */

import * as Plot from "@observablehq/plot";

import { choice } from "./controls";
import type { Example, Predictions, Quality } from "./data";
import { atWidth, h, name, shorten } from "./dom";

export interface Part {
  id: string;
  title: string;
  content: HTMLElement;
}

const NUMBERED = 12; // classes up to which counts stand in the cells of the matrix
const NAMED = 40; // classes up to which their names stand beside it
const LETTERS = 14; // of a class's name on an axis

/** A share in percent; one that is not quite 0 or 1 is not shown as if it were. */
function percent(share: number): string {
  if (share > 0 && share < 0.0005) return "< 0.1 %";
  if (share < 1 && share >= 0.9995) return "> 99.9 %";
  const fine = share > 0 && share < 1 && Math.abs(share - 0.5) > 0.49;
  return `${(100 * share).toFixed(fine ? 1 : 0)} %`;
}

const share = (value: number | null | undefined): string => (value === null || value === undefined ? "–" : percent(value));

export function predictionParts(made: Predictions): Part[] {
  const parts = [{ id: "quality", title: "How often are predictions right?", content: overview(made) }];
  if (made.quality) {
    parts.push({ id: "mistakes", title: "Where they are wrong, and how sure they are", content: mistakes(made, made.quality) });
  }
  parts.push({ id: "classes", title: "Class by class", content: byClass(made) });
  if (made.examples.length) parts.push({ id: "examples", title: "The surest predictions", content: examples(made) });
  return parts;
}

/** What is protected in everyday words; the exact guarantee can be opened. */
function protection({ in_short, promise }: Predictions): HTMLElement {
  const exact = h("details", {}, h("summary", {}, "The exact guarantee"), h("p", {}, promise));
  return h("div", { class: "promise" }, h("p", {}, in_short || promise), in_short && exact);
}

function overview(made: Predictions): HTMLElement {
  const said = made.n_nodes - made.n_abstained;
  const from = `Classes of ${count(made.n_nodes, "node")}, learnt from the labels of ${count(made.n_labelled, "other")}.`;
  const abstained = made.threshold
    ? ` No class is said below a probability of ${percent(made.threshold)}: it is said for ${count(said, "node")}.`
    : "";
  const unused = made.uses_graph ? "" : " The graph did not help, so the predictions do not use it.";
  const { quality } = made;
  const measured = h("div", {});
  if (quality) {
    const chart = h("div", { class: "chart bars" });
    atWidth(chart, (width) => chart.replaceChildren(bars(Math.min(width, 760), made.without, quality)));
    measured.append(
      chart,
      h(
        "p",
        { class: "key" },
        `Measured on ${count(quality.count, "labelled node")} set aside: no neighbour was told their labels, and the weights were not learnt from them. The line is a 95 % interval.${quality.coverage < 1 ? ` A class is said for ${percent(quality.coverage)} of those set aside.` : ""}${made.private ? " This figure may be published." : ""}`,
      ),
    );
  } else {
    measured.append(h("p", {}, "How often they are right is not said: there are too few labels to set some aside for it."));
  }
  return h("div", {}, protection(made), h("p", {}, from + abstained + unused), measured);
}

const count = (number: number, what: string): string => `${number.toLocaleString("en")} ${what}${number === 1 ? "" : "s"}`;

function bars(width: number, without: string, quality: Quality): SVGElement | HTMLElement {
  const rows = [
    { of: "with the graph", value: quality.accuracy, colour: "var(--accent)" },
    { of: without, value: quality.without, colour: "var(--line-strong)" },
  ];
  const picture = Plot.plot({
    width,
    height: 160,
    marginLeft: 10,
    marginRight: 12,
    marginTop: 8,
    marginBottom: 24,
    style: { fontSize: "13px", fontFamily: "inherit", overflow: "visible" },
    x: { domain: [0, 1], label: null },
    y: { domain: rows.map((row) => row.of), label: null, axis: null, padding: 0.62 },
    marks: [
      Plot.axisX({ label: null, ticks: 5, tickSize: 0, tickFormat: (value: number) => `${100 * value} %`, fill: "var(--muted)" }),
      Plot.gridX({ ticks: 5, stroke: "var(--grid)", strokeOpacity: 1 }),
      Plot.barX(rows, { x: "value", y: "of", fill: "colour", rx: 3 }),
      Plot.ruleY([quality], { y: () => "with the graph", x1: "low", x2: "high", stroke: "var(--ink)", strokeWidth: 1.6 }),
      Plot.text(rows, { x: 0, y: "of", text: (row: { of: string; value: number }) => `${row.of}: ${percent(row.value)}`, textAnchor: "start", dy: -25, dx: 1, fill: "var(--ink)", fontWeight: 600 }),
    ],
  });
  picture.setAttribute("role", "img");
  picture.setAttribute(
    "aria-label",
    `Right with the graph: ${percent(quality.accuracy)}, 95 % interval ${percent(quality.low)} to ${percent(quality.high)}. ${without}: ${percent(quality.without)}`,
  );
  return picture;
}

function mistakes(made: Predictions, quality: Quality): HTMLElement {
  const matrix = h("div", { class: "chart matrix" });
  atWidth(matrix, (width) => matrix.replaceChildren(confusion(Math.min(width, 560), made.classes, quality)));
  const line = h("div", { class: "chart calibration" });
  atWidth(line, (width) => line.replaceChildren(calibration(Math.min(width, 520), quality)));
  return h(
    "div",
    { class: "panels" },
    figure("True and predicted class", "nodes set aside; darker: a larger share of the true class", matrix),
    figure("Probability said, and how often it is right", "near the line, probabilities can be taken at their word; bars: 95 % intervals", line),
  );
}

const figure = (title: string, words: string, content: HTMLElement): HTMLElement =>
  h("figure", { class: "panel" }, h("figcaption", {}, h("strong", {}, title), h("span", {}, words)), content);

function confusion(width: number, classes: string[], quality: Quality): SVGElement | HTMLElement {
  const cells = quality.confusion.flatMap((row, i) => {
    const all = row.reduce((sum, value) => sum + value, 0);
    return row.map((value, j) => ({ truth: i, predicted: j, value, part: all ? value / all : 0 }));
  });
  const numbered = classes.length <= NUMBERED;
  const short = (i: number): string => shorten(classes[i] as string, LETTERS);
  const longest = Math.max(...classes.map((_, i) => short(i).length));
  const left = Math.min(12 + 7 * longest, 0.34 * width);
  const turned = 8 * (longest + 1) > (width - left) / classes.length; // or they would touch
  const top = !numbered ? 8 : turned ? Math.min(12 + 6 * longest, 96) : 22;
  const picture = Plot.plot({
    width,
    height: top + 24 + Math.max(classes.length * Math.min(34, (width - left) / classes.length), 60),
    marginLeft: left,
    marginTop: top,
    marginBottom: 22,
    marginRight: 4,
    style: { fontSize: "12px", fontFamily: "inherit", overflow: "visible" },
    x: { domain: classes.map((_, i) => i), label: null, axis: null, padding: 0.06 },
    y: { domain: classes.map((_, i) => i), label: null, axis: null, padding: 0.06 },
    marks: [
      ...(classes.length <= NAMED ? [Plot.axisY({ label: null, tickSize: 0, tickFormat: short, fill: "var(--ink)" })] : []),
      ...(numbered ? [Plot.axisX({ anchor: "top", label: null, tickSize: 0, tickFormat: short, tickRotate: turned ? -50 : 0, fill: "var(--ink)" })] : []),
      Plot.cell(cells, { x: "predicted", y: "truth", fill: "var(--grid)", rx: 2 }),
      Plot.cell(cells, { x: "predicted", y: "truth", fill: "var(--accent)", fillOpacity: "part", rx: 2, title: (cell: (typeof cells)[0]) => `${classes[cell.truth]} predicted as ${classes[cell.predicted]}: ${plainCount(cell.value)} (${percent(cell.part)})` }),
      ...(numbered
        ? [Plot.text(cells.filter((cell) => cell.value >= 0.05), { x: "predicted", y: "truth", text: (cell: (typeof cells)[0]) => plainCount(cell.value), fill: (cell: (typeof cells)[0]) => (cell.part > 0.55 ? "var(--surface)" : "var(--ink)"), fontVariant: "tabular-nums" })]
        : []),
      Plot.text([numbered ? "predicted →" : "predicted, in the same order →"], { frameAnchor: "bottom-left", dy: 18, fill: "var(--muted)" }),
    ],
    opacity: { domain: [0, 1], range: [0, 1] },
  });
  const right = quality.confusion.reduce((sum, row, i) => sum + (row[i] as number), 0);
  picture.setAttribute("role", "img");
  picture.setAttribute("aria-label", `Confusion matrix of ${classes.length} classes: ${plainCount(right)} of ${quality.count} on the diagonal. The table below has recall and precision.`);
  return picture;
}

const plainCount = (value: number): string => (Number.isInteger(value) ? value.toLocaleString("en") : value.toFixed(1));

function calibration(width: number, quality: Quality): SVGElement | HTMLElement {
  const points = quality.calibration.map(([said, right, nodes]) => ({ said, right, nodes, ...interval(right, nodes) }));
  const most = Math.max(...points.map((point) => point.nodes));
  const ticks = { ticks: 5, tickSize: 0, label: null, tickFormat: (value: number) => `${100 * value} %`, fill: "var(--muted)" };
  const picture = Plot.plot({
    width,
    height: 340,
    marginLeft: 48,
    marginRight: 16,
    marginTop: 30,
    marginBottom: 44,
    style: { fontSize: "12px", fontFamily: "inherit", overflow: "visible" },
    x: { domain: [0, 1], label: null },
    y: { domain: [0, 1], label: null },
    r: { domain: [0, most], range: [2, 12] },
    marks: [
      Plot.gridY({ ticks: 5, stroke: "var(--grid)", strokeOpacity: 1 }),
      Plot.axisX(ticks),
      Plot.axisY(ticks),
      Plot.line([[0, 0], [1, 1]], { stroke: "var(--line-strong)", strokeDasharray: "4 4" }),
      Plot.ruleX(points, { x: "said", y1: "low", y2: "high", stroke: "var(--accent)", strokeOpacity: 0.45, strokeWidth: 1.5 }),
      Plot.dot(points, { x: "said", y: "right", r: "nodes", fill: "var(--accent)", stroke: "var(--surface)", title: (point: (typeof points)[0]) => `said ${percent(point.said)}, right ${percent(point.right)}: ${count(point.nodes, "node")}` }),
      Plot.text(["probability said →"], { frameAnchor: "bottom-right", dy: 36, fill: "var(--muted)" }),
      Plot.text(["↑ share that is right"], { frameAnchor: "top-left", dx: -44, dy: -26, fill: "var(--muted)" }),
    ],
  });
  picture.setAttribute("role", "img");
  picture.setAttribute("aria-label", points.map((point) => `Said ${percent(point.said)}, right ${percent(point.right)}`).join(". "));
  return picture;
}

/** A 95 % interval of a share (Wilson's): few nodes tell little. */
function interval(share: number, nodes: number): { low: number; high: number } {
  const z = 1.96;
  const middle = share + (z * z) / (2 * nodes);
  const half = z * Math.sqrt((share * (1 - share)) / nodes + (z * z) / (4 * nodes * nodes));
  const scale = 1 + (z * z) / nodes;
  return { low: Math.max(0, (middle - half) / scale), high: Math.min(1, (middle + half) / scale) };
}

function byClass({ classes, predicted, quality, without }: Predictions): HTMLElement {
  const heads = ["class", "predicted", ...(quality ? ["set aside", "found (recall)", "right (precision)", "average precision", `average precision, ${without}`] : [])];
  const rows = classes.map((label, i) => {
    const cells = [h("td", {}, name(label)), number((predicted[i] as number).toLocaleString("en"))];
    if (!quality) return h("tr", {}, ...cells);
    const there = (quality.confusion[i] as number[]).reduce((sum, value) => sum + value, 0);
    const recall = quality.recall[i];
    const bar = h("span", { class: "bar-of", "aria-hidden": true }, h("i", { style: `width: ${100 * (recall ?? 0)}%` }));
    return h(
      "tr",
      {},
      ...cells,
      number(plainCount(there)),
      h("td", { class: "number barred" }, bar, h("span", {}, share(recall))),
      number(share(quality.precision[i])),
      number(share(quality.average_precision[i])),
      number(share(quality.average_precision_without[i])),
    );
  });
  const head = h("tr", {}, ...heads.map((title, i) => h("th", { scope: "col", class: i ? "number" : undefined }, title)));
  return h(
    "div",
    {},
    h(
      "div",
      { class: "scroll", tabindex: 0, role: "region", "aria-label": "Measures of every class" },
      h("table", { class: "by-class" }, h("thead", {}, head), h("tbody", {}, ...rows)),
    ),
    quality &&
      h(
        "p",
        { class: "key" },
        "Found: of the nodes of the class that were set aside, the share predicted as it. Right: of those predicted as it, the share that are. Average precision: how well its probability ranks the nodes, which counts for rare classes.",
      ),
  );
}

/** The nodes for which each class is most probable, and what their neighbours named. */
function examples(made: Predictions): HTMLElement {
  const body = h("tbody");
  const which = made.classes.map((_, i) => i).filter((i) => made.examples.some((one) => one.predicted === i));
  const picker = choice<number>({ label: "Class", text: (i) => made.classes[i] as string, changed: show });

  function show(wanted: number): void {
    body.replaceChildren(...made.examples.filter((one) => one.predicted === wanted).map(row));
  }

  const row = (one: Example): HTMLElement =>
    h(
      "tr",
      {},
      h("td", {}, name(one.node)),
      number(percent(one.probability)),
      number(percent(one.without)),
      number(one.heard.map((value) => `${value < 0 ? "−" : ""}${Math.abs(value).toFixed(1)}`).join(" and ")),
    );

  show(picker.offer(which));
  const heads = ["node", "probability", made.without, "neighbours who named it, with noise"];
  return h(
    "div",
    {},
    h("div", { class: "controls" }, picker.element),
    h(
      "div",
      { class: "scroll", tabindex: 0, role: "region", "aria-label": "The surest predictions" },
      h(
        "table",
        { class: "examples" },
        h("thead", {}, h("tr", {}, ...heads.map((title, i) => h("th", { scope: "col", class: i ? "number" : undefined }, title)))),
        body,
      ),
    ),
    h("p", { class: "key" }, `Neighbours name a class once, in one of two rounds; those to be predicted count half. The noise is about ${Number(made.noise.toPrecision(2))} in each number.`),
  );
}

const number = (text: string): HTMLElement => h("td", { class: "number" }, text);
