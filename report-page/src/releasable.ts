/** The releasable part: private rankings, the radial picture, the promises. No truth in here. */

import { distinct, plain, type Page, type Promise_, type Ranking, score } from "./data";
import { atWidth, h, name } from "./dom";
import { radial, type Radial } from "./radial";
import { picker, placeOf, type Picker } from "./selection";

export interface Releasable {
  element: HTMLElement;
  picker: Picker;
}

/** Rankings that may leave the curator: noise that nobody can subtract, and an epsilon. */
export const mayLeave = (ranking: Ranking): boolean => ranking.private && ranking.epsilon !== null;

export function privateRanking(page: Page, changed: (ranking: Ranking) => void): Releasable {
  const rankings = page.rankings.filter(mayLeave);
  const list = h("div", { class: "ranking-list" });
  const picture = h("figure", { class: "picture" });
  let size = 0;
  const promise = h("div", { class: "promise", "aria-live": "polite" });

  function draw(ranking: Ranking): void {
    const rows = new Map<string, HTMLElement>();
    const drawing: Radial = radial(ranking.source, ranking.rows, size, (node) => {
      for (const [key, row] of rows) row.classList.toggle("chosen", key === node);
    });
    const body = h("tbody");
    for (const ranked of ranking.rows) {
      const row = h(
        "tr",
        {
          pointerenter: () => drawing.highlight(ranked.node),
          pointerleave: () => drawing.highlight(null),
        },
        h("td", { class: "number" }, String(ranked.rank)),
        h("td", {}, name(ranked.node)),
        h("td", { class: "number" }, score(ranked.score)),
      );
      rows.set(ranked.node, row);
      body.append(row);
    }
    const box = h(
      "div",
      { class: "scroll", tabindex: 0, role: "region", "aria-label": "Private ranking" },
      h(
        "table",
        { class: "ranking" },
        h("caption", {}, "Private ranking"),
        h(
          "thead",
          {},
          h(
            "tr",
            {},
            h("th", { scope: "col", class: "number" }, "rank"),
            h("th", { scope: "col" }, "node"),
            h("th", { scope: "col", class: "number" }, "private score"),
          ),
        ),
        body,
      ),
    );
    list.replaceChildren(box);
    picture.replaceChildren(
      drawing.element,
      h(
        "figcaption",
        {},
        "Nearer to the source means a better private rank; rings count members. Directions mean " +
          "nothing, and no edges are drawn.",
      ),
    );
    promise.replaceChildren(...promiseFor(ranking));
  }

  function promiseFor(ranking: Ranking): HTMLElement[] {
    const text = page.guarantees.find(
      (one) => one.mechanism === ranking.mechanism && one.epsilon === ranking.epsilon,
    )?.text;
    const together = rankings.filter((one) => placeOf(one) === placeOf(ranking));
    const sum = together.reduce((total, one) => total + (one.epsilon as number), 0);
    return [
      h("h4", {}, "What this ranking promises"),
      text ? h("p", {}, text) : null,
      together.length > 1 &&
        h(
          "p",
          { class: "quiet" },
          `Releases add up. Whoever sees all ${together.length} private rankings for this source ` +
            `on this page learns up to ε = ${plain(sum)}, not ε = ${plain(ranking.epsilon as number)}.`,
        ),
    ].filter((child) => child instanceof HTMLElement);
  }

  const pick = picker(rankings, (ranking) => {
    draw(ranking);
    changed(ranking);
  });
  atWidth(picture, (width) => {
    size = Math.min(width, 600);
    draw(pick.ranking());
  });
  return {
    picker: pick,
    element: h(
      "div",
      { class: "private-ranking" },
      pick.element,
      h("div", { class: "side-by-side" }, list, picture),
      promise,
    ),
  };
}

/** All promises, by mechanism. */
export function promises(guarantees: Promise_[]): HTMLElement {
  const mechanisms = distinct(guarantees, (one) => one.mechanism);
  return h(
    "div",
    { class: "promises" },
    ...mechanisms.map((mechanism) => {
      const own = guarantees
        .filter((one) => one.mechanism === mechanism)
        .sort((a, b) => (a.epsilon ?? Infinity) - (b.epsilon ?? Infinity));
      return h(
        "details",
        { open: mechanisms.length === 1 && own.length === 1 },
        h(
          "summary",
          {},
          h("span", { class: "mechanism" }, mechanism),
          h(
            "span",
            { class: "quiet" },
            own[0]?.epsilon === null
              ? "no epsilon"
              : `ε = ${own.map((one) => (one.epsilon === null ? "none" : plain(one.epsilon))).join(", ")}`,
          ),
        ),
        ...own.map((one) =>
          h(
            "p",
            { class: one.epsilon === null ? "warning" : undefined },
            h("b", {}, one.epsilon === null ? "no epsilon" : `ε = ${plain(one.epsilon)}`),
            h("span", {}, one.text),
          ),
        ),
      );
    }),
  );
}
