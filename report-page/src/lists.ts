/** Lists of members: as released, and for the curator beside those without privacy. */

import { type Listed, type MemberList, plain, score } from "./data";
import { type Child, h, name } from "./dom";
import { samePlace } from "./selection";

/** Lists that may leave the curator: noise that nobody can subtract, and an epsilon. */
export const mayLeave = (list: MemberList): boolean => list.private && list.epsilon !== null;

/** A released list, drawn with the places that the noise leaves open; the truth is not marked. */
export function releasedList(list: MemberList, lists: MemberList[]): HTMLElement[] {
  const open = list.rows.some((row) => row.first !== null);
  const reasons = list.rows.some((row) => row.why);
  const longest = Math.max(2, list.rows.length, ...list.rows.map((row) => row.last ?? 0));
  const scale = h("span", { class: "scale", "aria-hidden": true }, h("span", {}, "1"), h("span", {}, `${longest}`));
  const over = open && h("div", { class: "open" }, h("span", {}, "could be place"), scale);
  const columns = ["", "who", ...(over ? [over] : []), reasons ? "why" : "private score"];
  const made = table(`For ${list.member}, ${lossOf(list)}`, columns, list.rows, (row, place) => [
    open && h("td", { class: "places" }, h("div", { class: "open" }, h("span", {}, places(row)), span(row, place, longest))),
    h("td", {}, reasons ? row.why : score(row.score)),
  ]);
  made.classList.add("released");
  return [made, h("p", { class: "quiet" }, list.remark), promise(list, lists)];
}

export const lossOf = (list: MemberList): string =>
  list.epsilon === null ? "without privacy" : `ε = ${plain(list.epsilon)}`;

const places = ({ first, last }: Listed): string =>
  first === null || last === null ? "" : first === last ? `${first}` : `${first} to ${last}`;

/** A bar from the first to the last place that is left open, and a dot at the place on the list. */
function span({ first, last }: Listed, place: number, longest: number): HTMLElement | null {
  if (first === null || last === null) return null;
  const at = (value: number): number => (100 * Math.log(value)) / Math.log(longest);
  return h(
    "span",
    { class: "track", "aria-hidden": true },
    h("i", { style: `left: ${at(first)}%; width: ${at(last) - at(first)}%` }),
    h("b", { style: `left: ${at(place)}%` }),
  );
}

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
  const title = list.epsilon === null ? list.mechanism : `private, ${lossOf(list)}`;
  const right = list.rows.filter((row) => row.right).length;
  return table(`${title}: ${right} of ${list.rows.length}`, ["", "who", ""], list.rows, (row) => [
    h("td", { class: "right" }, row.right ? "✓" : ""),
  ]);
}

function table(caption: string, columns: (string | HTMLElement)[], rows: Listed[], rest: (row: Listed, place: number) => Child[]): HTMLElement {
  return h(
    "table",
    { class: "list" },
    h("caption", {}, caption),
    h("thead", {}, h("tr", {}, ...columns.map((title) => h("th", { scope: "col" }, title)))),
    h(
      "tbody",
      {},
      ...rows.map((row, i) =>
        h("tr", {}, h("td", { class: "number" }, String(i + 1)), h("td", {}, name(row.node)), ...rest(row, i + 1)),
      ),
    ),
  );
}
