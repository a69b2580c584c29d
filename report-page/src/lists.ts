/** Lists of members: as released, and for the curator beside those without privacy. */

import { type Listed, type MemberList, plain, score } from "./data";
import { type Child, h, name } from "./dom";
import { samePlace } from "./selection";

/** Lists that may leave the curator: noise that nobody can subtract, and an epsilon. */
export const mayLeave = (list: MemberList): boolean => list.private && list.epsilon !== null;

/** A released list with its promise; the marks of the truth are not shown. */
export function releasedList(list: MemberList, lists: MemberList[]): HTMLElement[] {
  if (!mayLeave(list)) return [h("p", { class: "empty" }, "The noise of this list was seeded: it may not leave.")];
  const open = list.rows.some((row) => row.first !== null);
  const columns = open ? ["", "who", "could be place", "why"] : ["", "who", "private score"];
  const cells = (row: Listed): string[] =>
    open ? [`${places(row)}`, row.why] : [score(row.score)];
  return [
    table(`For ${list.member}, at ε = ${plain(list.epsilon as number)}`, columns, list.rows, (row) =>
      cells(row).map((cell, i) => h("td", { class: i ? undefined : "number" }, cell)),
    ),
    h("p", { class: "quiet" }, list.remark),
    promise(list, lists),
  ];
}

const places = ({ first, last }: Listed): string =>
  first === null || last === null ? "" : first === last ? `${first}` : `${first} to ${last}`;

/** What is protected in two sentences; the rest can be opened. */
function promise(list: MemberList, lists: MemberList[]): HTMLElement {
  const [covered, rest] = list.promise.split(/ (?=Not covered: )/);
  const together = lists.filter((one) => mayLeave(one) && samePlace(one, list));
  const sum = together.reduce((total, one) => total + (one.epsilon as number), 0);
  return h(
    "div",
    { class: "promise" },
    h("p", {}, covered),
    rest && h("details", {}, h("summary", {}, "What is not covered"), h("p", {}, rest)),
    together.length > 1 &&
      h(
        "p",
        { class: "quiet" },
        `Releases add up. Whoever sees all ${together.length} private lists for this member on this page ` +
          `learns up to ε = ${plain(sum)}, not ε = ${plain(list.epsilon as number)}.`,
      ),
  );
}

/** The list and those without privacy of the same member, side by side, with the truth marked. */
export function besideTruth(list: MemberList, lists: MemberList[]): HTMLElement[] {
  const others = lists.filter((one) => one.epsilon === null && samePlace(one, list));
  return [
    h("p", { class: "quiet" }, h("b", { class: "right" }, "✓"), ` is ${list.truth}.`),
    h("div", { class: "beside" }, ...[list, ...others].map(marked)),
  ];
}

function marked(list: MemberList): HTMLElement {
  const title = list.epsilon === null ? list.mechanism : `private, ε = ${plain(list.epsilon)}`;
  const right = list.rows.filter((row) => row.right).length;
  return table(`${title}: ${right} of ${list.rows.length}`, ["", "who", ""], list.rows, (row) => [
    h("td", { class: "right" }, row.right ? "✓" : ""),
  ]);
}

function table(caption: string, columns: string[], rows: Listed[], rest: (row: Listed) => Child[]): HTMLElement {
  return h(
    "table",
    { class: "list" },
    h("caption", {}, caption),
    h("thead", {}, h("tr", {}, ...columns.map((title) => h("th", { scope: "col" }, title)))),
    h(
      "tbody",
      {},
      ...rows.map((row, i) =>
        h("tr", {}, h("td", { class: "number" }, String(i + 1)), h("td", {}, name(row.node)), ...rest(row)),
      ),
    ),
  );
}
