/** One chart: utility against epsilon, for one data set, metric and scope. */

import * as Plot from "@observablehq/plot";

import { figure, isLevel, plain, type Result } from "./data";
import { h, shorten, svg } from "./dom";
import type { Look } from "./series";

export interface View {
  rows: Result[];
  looks: Map<string, Look>;
  label: string;
}

/** A place on the chart that can be pointed at, with the mouse or with the arrow keys. */
interface Spot {
  x: number;
  y: number;
  series: string;
  words: string;
}

interface EndLabel {
  series: string;
  y: number;
  text: string;
  colour: string;
  level: boolean;
}

const LABEL_GAP = 15;
const LETTERS = 32;
const NARROW = 470;
const LEFT = 40;
const TICK_GAP = 8; // pixels between the labels of the axis
const DIGIT = 7.2; // pixels at most

export function drawCurves(holder: HTMLElement, width: number, view: View): void {
  const byMechanism = new Map<string, Result[]>();
  for (const row of view.rows) {
    byMechanism.set(row.mechanism, [...(byMechanism.get(row.mechanism) ?? []), row]);
  }
  const curves = [...byMechanism].filter(([, rows]) => !isLevel(rows));
  const levels = [...byMechanism].filter(([, rows]) => isLevel(rows));
  const narrow = width < NARROW;

  const xDomain = horizontalDomain(curves.flatMap(([, rows]) => rows));
  const drawable = (row: Result): boolean => row.epsilon !== null && row.epsilon > 0;

  const positions = [...new Set(curves.flatMap(([, rows]) => rows).filter(drawable).map((r) => r.epsilon as number))];
  if (!positions.length) positions.push(...xDomain);

  const levelText = (row: Result): string => `${row.mechanism} ${figure(row.mean)}`;
  const texts = [...curves.map(([mechanism]) => mechanism), ...levels.flatMap(([, rows]) => rows.map(levelText))];
  const longest = Math.max(0, ...texts.map((text) => text.length));
  const room = narrow ? 14 : 22 + 6.4 * Math.min(longest, LETTERS);

  const marks: Plot.Markish[] = [
    Plot.gridY({ ticks: 6, stroke: "var(--grid)", strokeOpacity: 1 }),
    Plot.axisY({ label: null, tickSize: 0, ticks: 6, fill: "var(--muted)" }),
    Plot.axisX({
      label: null,
      tickSize: 4,
      ticks: horizontalTicks(positions, xDomain, width - LEFT - room),
      tickFormat: plain,
      fill: "var(--muted)",
      stroke: "var(--muted)",
    }),
  ];
  const labels: EndLabel[] = [];
  const spots: Spot[] = [];

  for (const [mechanism, rows] of levels) {
    const look = view.looks.get(mechanism) as Look;
    for (const row of rows) {
      marks.push(
        Plot.ruleY([row.mean], {
          stroke: look.colour,
          strokeDasharray: look.dash,
          strokeLinecap: "round",
          strokeWidth: 1.6,
          className: seriesClass(mechanism),
        }),
      );
      labels.push({ series: mechanism, y: row.mean, text: levelText(row), colour: "var(--muted)", level: true });
      if (row.paper_value !== null) {
        marks.push(hollow([{ ...row, epsilon: xDomain[1] }], "circle", "var(--muted)", mechanism));
      }
      for (const x of positions) {
        spots.push({ x, y: row.mean, series: mechanism, words: describe(row) });
      }
    }
  }
  for (const [mechanism, rows] of curves) {
    const look = view.looks.get(mechanism) as Look;
    const points = rows.filter(drawable).sort((a, b) => (a.epsilon as number) - (b.epsilon as number));
    const last = points.at(-1);
    if (!last) continue;
    const at = { x: "epsilon", className: seriesClass(mechanism) };
    marks.push(
      Plot.areaY(points, {
        ...at,
        y1: "low",
        y2: "high",
        fill: look.colour,
        fillOpacity: 0.16,
      }),
      Plot.line(points, {
        ...at,
        y: "mean",
        stroke: look.colour,
        strokeWidth: 2,
        strokeDasharray: look.dash,
        strokeLinejoin: "round",
      }),
      Plot.dot(points, { ...at, y: "mean", fill: look.colour, symbol: look.symbol ?? "circle", r: 3.6 }),
      hollow(points.filter((row) => row.paper_value !== null), look.symbol ?? "circle", look.colour, mechanism),
    );
    labels.push({ series: mechanism, y: last.mean, text: mechanism, colour: look.colour, level: false });
    for (const row of points) {
      spots.push({ x: row.epsilon as number, y: row.mean, series: mechanism, words: describe(row) });
    }
  }

  marks.push(
    ...(narrow ? [] : [atTheEnd(labels)]), // no room on a phone: the lines are told apart by the legend
    Plot.tip(
      spots,
      Plot.pointer({
        x: "x",
        y: "y",
        title: "words",
        fill: "var(--surface)",
        stroke: "var(--line-strong)",
        fontSize: 12.5,
        lineHeight: 1.35,
        maxRadius: 36,
        lineWidth: 26,
        preferredAnchor: "bottom",
      }),
    ),
  );

  const chart = Plot.plot({
    width,
    height: narrow ? 300 : 340,
    marginTop: 14,
    marginBottom: 30,
    marginLeft: LEFT,
    marginRight: room,
    style: { fontSize: "12px", fontFamily: "inherit", overflow: "visible" },
    x: { type: "log", domain: xDomain },
    y: { domain: verticalDomain(view.rows), nice: true },
    marks,
  }) as SVGSVGElement & Plot.Plot;
  for (const mark of chart.querySelectorAll("[aria-label]")) mark.removeAttribute("aria-label");
  chart.setAttribute("role", "img"); // the words below stand for all marks
  chart.setAttribute("aria-label", inWords(view, curves, levels));
  chart.addEventListener("input", () => emphasise(chart, chart.value as Spot | null));
  holder.replaceChildren(chart);
  walkWithArrows(holder, chart, spots);
}

const classes = new Map<string, string>();

/** A class for a mechanism's marks; made from its position, never from its name. */
function seriesClass(mechanism: string): string {
  if (!classes.has(mechanism)) classes.set(mechanism, `series-mark-${classes.size}`);
  return classes.get(mechanism) as string;
}

function emphasise(chart: SVGSVGElement, spot: Spot | null): void {
  const chosen = spot && seriesClass(spot.series);
  for (const mark of chart.querySelectorAll<SVGElement>('[class*="series-mark-"]')) {
    mark.style.opacity = !chosen || mark.classList.contains(chosen) ? "" : "0.25";
  }
}

function hollow(
  rows: Result[],
  symbol: Plot.SymbolType,
  colour: string,
  mechanism: string,
): Plot.Markish {
  return Plot.dot(rows, {
    x: "epsilon",
    y: "paper_value",
    symbol,
    stroke: colour,
    strokeWidth: 1.8,
    fill: "var(--surface)",
    r: 5.2,
    className: seriesClass(mechanism),
  });
}

function describe(row: Result): string {
  const interval = row.low < row.high ? ` [${figure(row.low)}, ${figure(row.high)}]` : "";
  const epsilon = row.epsilon === null ? "no epsilon" : `ε = ${plain(row.epsilon)}`;
  return [
    `${shorten(row.mechanism, 40)}, ${epsilon}`,
    `${shorten(row.metric, 30)} ${figure(row.mean)}${interval}`,
    `${row.n_sources} sources × ${row.repeats} repeats`,
    ...(row.paper_value === null ? [] : [`paper: ${figure(row.paper_value)}`]),
  ].join("\n");
}

function horizontalDomain(rows: Result[]): [number, number] {
  const all = rows.map((row) => row.epsilon ?? 0).filter((epsilon) => epsilon > 0);
  if (!all.length) return [0.1, 10];
  const [low, high] = [Math.min(...all), Math.max(...all)];
  return low === high ? [low / 3, high * 3] : [low, high];
}

/** The epsilons that were measured; of those whose labels would overlap, the first one. */
function horizontalTicks(measured: number[], [low, high]: [number, number], width: number): number[] {
  const at = (epsilon: number): number => (width * Math.log(epsilon / low)) / Math.log(high / low);
  const half = (epsilon: number): number => (DIGIT * plain(epsilon).length) / 2;
  let end = -Infinity;
  return [...measured]
    .sort((a, b) => a - b)
    .filter((epsilon) => {
      const fits = at(epsilon) - half(epsilon) >= end + TICK_GAP;
      if (fits) end = at(epsilon) + half(epsilon);
      return fits;
    });
}

function verticalDomain(rows: Result[]): [number, number] {
  const values = rows
    .flatMap((row) => [row.mean, row.low, row.high, row.paper_value])
    .filter((value): value is number => value !== null);
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const pad = 0.04 * (high - low) || 0.05 * Math.abs(high) || 1;
  const top = high <= 1 ? Math.min(1, high + pad) : high + pad; // a share is at most 1
  return [low >= 0 ? Math.max(0, low - pad) : low - pad, top];
}

/** Push overlapping labels apart, as little as needed, inside [top, bottom]. */
export function spread(wanted: number[], gap: number, top: number, bottom: number): number[] {
  const order = wanted.map((_, i) => i).sort((a, b) => (wanted[a] as number) - (wanted[b] as number));
  const placed = order.map((i) => Math.min(Math.max(wanted[i] as number, top), bottom));
  for (let i = 1; i < placed.length; i += 1) {
    placed[i] = Math.max(placed[i] as number, (placed[i - 1] as number) + gap);
  }
  let limit = bottom;
  for (let i = placed.length - 1; i >= 0; i -= 1) {
    placed[i] = Math.min(placed[i] as number, limit);
    limit = (placed[i] as number) - gap;
  }
  const result: number[] = [];
  order.forEach((i, at) => (result[i] = placed[at] as number));
  return result;
}

function atTheEnd(labels: EndLabel[]): Plot.RenderFunction {
  return (_index, scales, _values, dimensions) => {
    const y = scales.y as (value: number) => number;
    const edge = dimensions.width - dimensions.marginRight;
    const bottom = dimensions.height - dimensions.marginBottom + 4;
    const places = spread(labels.map((label) => y(label.y)), LABEL_GAP, dimensions.marginTop - 4, bottom);
    return svg(
      "g",
      { "font-size": 12, "text-anchor": "start", "aria-hidden": true },
      ...labels.flatMap((label, i) => {
        const [from, to] = [y(label.y), places[i] as number];
        return [
          svg("path", {
            d: `M${edge + 5},${from}C${edge + 10},${from} ${edge + 8},${to} ${edge + 13},${to}`,
            fill: "none",
            stroke: label.colour,
            "stroke-opacity": 0.7,
          }),
          svg(
            "text",
            {
              x: edge + 17,
              y: to,
              dy: "0.32em",
              fill: label.colour,
              class: seriesClass(label.series),
              "font-weight": label.level ? 400 : 600,
            },
            shorten(label.text, LETTERS),
          ),
        ];
      }),
    );
  };
}

function inWords(view: View, curves: [string, Result[]][], levels: [string, Result[]][]): string {
  const range = (rows: Result[]): string => {
    const sorted = [...rows].sort((a, b) => (a.epsilon ?? 0) - (b.epsilon ?? 0));
    const [first, last] = [sorted[0] as Result, sorted.at(-1) as Result];
    return `${figure(first.mean)} at epsilon ${plain(first.epsilon ?? 0)} to ${figure(last.mean)} at ${plain(last.epsilon ?? 0)}`;
  };
  return [
    view.label,
    ...curves.map(([mechanism, rows]) => `${mechanism}: ${range(rows)}`),
    ...levels.map(([mechanism, rows]) => `${mechanism}: ${figure((rows[0] as Result).mean)}`),
  ].join(". ");
}

/** Arrow keys move over the points: left and right along epsilon, up and down between lines. */
function walkWithArrows(holder: HTMLElement, chart: SVGSVGElement & Plot.Plot, spots: Spot[]): void {
  if (!spots.length) return;
  const spoken = h("div", { class: "unseen", "aria-live": "polite" });
  holder.append(spoken);
  let at = -1;
  holder.onkeydown = (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (event.key === "Escape") point(chart, null);
    if (step === undefined) return;
    event.preventDefault();
    const alone = event.key === "ArrowRight" || event.key === "ArrowLeft";
    do at = (at + step + spots.length) % spots.length;
    while (!alone && isInsideSeries(spots, at));
    const spot = spots[at] as Spot;
    point(chart, spot);
    spoken.textContent = spot.words.replaceAll("\n", ". ");
  };
  holder.onblur = () => point(chart, null);
}

const isInsideSeries = (spots: Spot[], at: number): boolean =>
  at > 0 && spots[at - 1]?.series === spots[at]?.series;

function point(chart: SVGSVGElement & Plot.Plot, spot: Spot | null): void {
  if (!spot) {
    chart.dispatchEvent(new PointerEvent("pointerleave", { pointerType: "mouse" }));
    return;
  }
  const [x, y] = [chart.scale("x")?.apply(spot.x), chart.scale("y")?.apply(spot.y)];
  const place = new DOMPoint(x, y).matrixTransform(chart.getScreenCTM() ?? undefined);
  const where = { clientX: place.x, clientY: place.y, pointerType: "mouse", bubbles: true };
  chart.dispatchEvent(new PointerEvent("pointerenter", where));
  chart.dispatchEvent(new PointerEvent("pointermove", where));
}
