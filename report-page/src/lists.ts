/** Lists of members: as released, and for the curator beside those without privacy. */

import { type Listed, type MemberList, plain, score } from "./data";
import { type Child, h, name } from "./dom";
import { samePlace } from "./selection";

/** Lists that may leave the curator: noise that nobody can subtract, and an epsilon. */
export const mayLeave = (list: MemberList): boolean => list.private && list.epsilon !== null;

/** A released list: suggestions with their reasons, a ranking with the places that are left open.
 *
 * What is protected is said first to members; beside the curator's chart the list is at the top.
 */
export function releasedList(list: MemberList, lists: MemberList[], promiseFirst: boolean): HTMLElement[] {
  const suggested = list.rows.some((row) => row.why);
  const made = suggested ? suggestions(list) : ranking(list);
  made.classList.add("released");
  const said = promise(list, lists);
  const below = [h("p", { class: "quiet" }, list.remark), suggested && howSure(list)];
  return (promiseFirst ? [said, made, ...below] : [made, ...below, said]).filter(
    (part): part is HTMLElement => Boolean(part),
  );
}

/** Who, and why in a member's words; the number behind each word is its tooltip. */
function suggestions(list: MemberList): HTMLElement {
  return table(`For ${list.member}`, ["", "who", "why"], list.rows, (row) => [
    h(
      "td",
      {},
      row.strength && h("span", { class: `strength ${Object.hasOwn(WORDS, row.strength) ? row.strength : ""}`, title: byChance(row) || undefined }, row.strength),
      row.why !== row.strength && ` ${row.why}`,
    ),
  ]);
}

const WORDS: Record<string, string> = {
  strong: "of 100 such names, fewer than about 10 are there by chance: noise alone put them on the list.",
  weak: "of 100 such names, about 10 to 50 are there by chance.",
  popular: "nothing but popularity speaks for the name.",
};

/** What the words mean, and the number of every name, for those who want to know. */
function howSure(list: MemberList): HTMLElement | null {
  const used = Object.entries(WORDS).filter(([word]) => list.rows.some((row) => row.strength === word));
  const known = list.rows.filter((row) => byChance(row));
  if (!used.length) return null;
  return h(
    "details",
    { class: "sure" },
    h("summary", {}, "How sure is this?"),
    h("dl", {}, ...used.flatMap(([word, meaning]) => [h("dt", {}, word), h("dd", {}, meaning)])),
    known.length > 0 && h("ul", {}, ...known.map((row) => h("li", {}, name(row.node), `: ${byChance(row)}.`))),
  );
}

function byChance({ chance }: Listed): string {
  if (chance === null || chance >= 1) return "";
  const count = chance < 0.01 ? "fewer than 1" : `about ${Math.round(100 * chance)}`;
  return `${count} of 100 such names ${count === "about 1" || chance < 0.01 ? "is" : "are"} there by chance`;
}

/** The places that the noise leaves open; the truth is not marked. */
function ranking(list: MemberList): HTMLElement {
  const open = list.rows.some((row) => row.first !== null);
  const longest = Math.max(2, list.rows.length, ...list.rows.map((row) => row.last ?? 0));
  const scale = h("span", { class: "scale", "aria-hidden": true }, h("span", {}, "1"), h("span", {}, `${longest}`));
  const over = open && h("div", { class: "open" }, h("span", {}, "could be rank"), scale);
  const columns = ["", "who", ...(over ? [over] : []), "private score"];
  return table(`For ${list.member}, ${lossOf(list)}`, columns, list.rows, (row, place) => [
    open && h("td", { class: "places" }, h("div", { class: "open" }, h("span", {}, places(row)), span(row, place, longest))),
    h("td", {}, score(row.score)),
  ]);
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

/** What is protected: in short if there are everyday words for it; the rest can be opened. */
function promise(list: MemberList, lists: MemberList[]): HTMLElement {
  const [covered, rest] = list.promise.split(/ (?=Not covered: )/);
  const together = lists.filter((one) => mayLeave(one) && samePlace(one, list));
  const sum = together.reduce((total, one) => total + (one.epsilon as number), 0);
  const closed = list.in_short ? [covered, rest, list.charged] : [rest, list.charged];
  return h(
    "div",
    { class: "promise" },
    h("p", {}, list.in_short || covered),
    closed.some(Boolean) &&
      h(
        "details",
        {},
        h("summary", {}, list.in_short ? "The exact guarantee" : "What is not covered"),
        ...closed.filter(Boolean).map((text) => h("p", {}, text)),
      ),
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
