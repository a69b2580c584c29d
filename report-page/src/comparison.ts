/** For the curator: a private ranking beside the true one. */

import { type Page, plain, type Ranked, type Ranking, score } from "./data";
import { atWidth, h, shorten, svg } from "./dom";
import { picker, placeOf, type Picker } from "./selection";
import { hideTooltip, showTooltip } from "./tooltip";

const STEP = 25;
const TOP = 34;
const WIDEST = 760;

export const hasTruth = (ranking: Ranking): boolean =>
  ranking.epsilon !== null &&
  ranking.rows.some((row) => row.trueRank !== null || row.neighbour !== null);

/** The exact ranking itself: no epsilon, and every node at its true rank. */
const isTruth = (ranking: Ranking): boolean =>
  ranking.epsilon === null && ranking.rows.every((row) => row.trueRank === row.rank);

export function comparison(page: Page, changed: (ranking: Ranking) => void): { element: HTMLElement; picker: Picker } {
  const rankings = page.rankings.filter(hasTruth);
  const words = h("p", { class: "finding", "aria-live": "polite" });
  const holder = h("div", { class: "slope" });
  let width = 0;

  function draw(): void {
    const ranking = pick.ranking();
    const truth = page.rankings.find((one) => isTruth(one) && placeOf(one) === placeOf(ranking));
    words.textContent = finding(ranking);
    if (width) holder.replaceChildren(slope(ranking, truth, Math.min(width, WIDEST)));
  }

  const pick = picker(rankings, (ranking) => {
    draw();
    changed(ranking);
  });
  draw();
  atWidth(holder, (now) => {
    width = now;
    draw();
  });
  return {
    picker: pick,
    element: h(
      "div",
      { class: "comparison" },
      pick.element,
      words,
      holder,
      h(
        "p",
        { class: "key" },
        h("span", { class: "mark neighbour" }, "■ neighbour of the source"),
        h("span", { class: "mark stranger" }, "● not a neighbour"),
        h("span", { class: "mark" }, "dashed: true rank is below this list"),
      ),
    ),
  };
}

/** How much of the truth came through, and how much of that the owner knew anyway. */
function finding(ranking: Ranking): string {
  const k = ranking.rows.length;
  const hits = ranking.rows.filter((row) => row.trueRank !== null && row.trueRank <= k);
  const known = hits.filter((row) => row.neighbour);
  const seeded = ranking.private ? "" : " Its noise is not private (seeded), so it may not leave.";
  const marked = ranking.rows.some((row) => row.neighbour !== null);
  return (
    `At ε = ${plain(ranking.epsilon as number)}, ${hits.length} of the private top ${k} ${are(hits.length)} in the true top ${k}` +
    (marked && hits.length ? neighbours(known.length) : ".") +
    seeded
  );
}

const are = (count: number): string => (count === 1 ? "is" : "are");

function neighbours(count: number): string {
  if (count === 0) return "; none of these is a neighbour of the source.";
  const what = count === 1 ? "a neighbour" : "neighbours";
  return `; ${count} of these ${are(count)} ${what} of the source, which its owner knows without any budget.`;
}

function slope(ranking: Ranking, truth: Ranking | undefined, width: number): SVGSVGElement {
  const k = ranking.rows.length;
  const narrow = width < 560;
  const letters = narrow ? 9 : 26;
  const names = [...ranking.rows, ...(truth?.rows ?? [])].map((row) => Array.from(row.node).length);
  const side = 48 + 7.6 * Math.max(5, Math.min(letters, Math.max(...names)));
  const [left, right] = [side, width - side];
  const y = (rank: number): number => TOP + STEP * (rank - 0.5);
  const places = new Map<number, { node: string; found: boolean }>();
  for (const row of truth?.rows.slice(0, k) ?? []) {
    places.set(row.rank, { node: row.node, found: false });
  }
  for (const row of ranking.rows) {
    if (row.trueRank !== null && row.trueRank <= k) places.set(row.trueRank, { node: row.node, found: true });
  }

  const picture = svg("svg", {
    viewBox: `0 0 ${width} ${TOP + STEP * k + 6}`,
    width,
    height: TOP + STEP * k + 6,
    role: "img",
    "aria-label": `Private ranks beside true ranks for ${placeOf(ranking)}. ` + finding(ranking),
  });
  picture.append(
    svg("text", { x: left - 14, y: 14, class: "head", "text-anchor": "end" }, "private rank"),
    svg("text", { x: right + 14, y: 14, class: "head" }, "true rank"),
  );
  for (let rank = 1; rank <= k; rank += 1) {
    const place = places.get(rank);
    picture.append(
      svg("text", { x: right + 30, y: y(rank), dy: "0.32em", class: "rank", "text-anchor": "end" }, `${rank}`),
      svg(
        "text",
        { x: right + 40, y: y(rank), dy: "0.32em", class: place?.found ? "node" : "missed" },
        place ? shorten(place.node, letters) : "·",
      ),
    );
    if (place && !place.found) {
      picture.append(svg("circle", { cx: right, cy: y(rank), r: 3.5, class: "hollow" }));
    }
  }
  ranking.rows.forEach((row, i) => picture.append(slopeRow(row, i + 1)));
  return picture;

  function slopeRow(row: Ranked, place: number): SVGGElement {
    const from = y(place);
    const inside = row.trueRank !== null && row.trueRank <= k;
    const to = inside ? y(row.trueRank as number) : from;
    const end = inside ? right : left + (right - left) * 0.3;
    const bend = (right - left) / 2;
    const kind = row.neighbour === null ? "unmarked" : row.neighbour ? "neighbour" : "stranger";
    const words = [
      shorten(row.node, 60),
      `private rank ${row.rank}, score ${score(row.score)}`,
      row.trueRank === null ? "true rank unknown" : `true rank ${row.trueRank}`,
      ...(row.neighbour === null ? [] : [row.neighbour ? "neighbour of the source" : "not a neighbour"]),
    ].join("\n");
    const group: SVGGElement = svg(
      "g",
      {
        class: `row ${kind}`,
        tabindex: 0,
        role: "img",
        "aria-label": words.replaceAll("\n", ", "),
        pointerenter: () => showTooltip(start, words),
        pointerleave: hideTooltip,
        focus: () => showTooltip(start, words),
        blur: hideTooltip,
      },
      svg("path", {
        d: inside
          ? `M${left},${from}C${left + bend},${from} ${right - bend},${to} ${right},${to}`
          : `M${left},${from}H${end}`,
        class: inside ? "link" : "link lost",
      }),
      svg("rect", { x: 0, y: from - STEP / 2, width: left, height: STEP, class: "target" }),
      svg("text", { x: left - 40, y: from, dy: "0.32em", "text-anchor": "end", class: "node" }, shorten(row.node, letters)),
      svg("text", { x: left - 14, y: from, dy: "0.32em", "text-anchor": "end", class: "rank" }, `${row.rank}`),
    );
    const start = marker(left, from, row.neighbour);
    group.append(start);
    if (inside) group.append(marker(right, to, row.neighbour));
    else if (row.trueRank !== null) {
      group.append(svg("text", { x: end + 6, y: from, dy: "0.32em", class: "far" }, `true rank ${row.trueRank}`));
    }
    return group;
  }
}

function marker(x: number, y: number, neighbour: boolean | null): SVGElement {
  return neighbour
    ? svg("rect", { x: x - 4.5, y: y - 4.5, width: 9, height: 9, class: "dot" })
    : svg("circle", { cx: x, cy: y, r: 4.5, class: "dot" });
}
