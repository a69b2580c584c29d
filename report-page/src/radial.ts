/** The radial picture: members around the source, nearer means a better private rank.
 *
 * Positions are made from the private ranks alone. No line is drawn from one node to another,
 * so nothing in the picture can be read as an edge.
 */

import { type Ranked, score } from "./data";
import { shorten, svg } from "./dom";
import { hideTooltip, showTooltip } from "./tooltip";

const GOLDEN = Math.PI * (3 - Math.sqrt(5));
const MOST = 40;

export interface Radial {
  element: SVGSVGElement;
  highlight(node: string | null): void;
}

/** Draw `rows` around `source` in a square of `size` pixels; `pointed` hears of the chosen node. */
export function radial(
  source: string,
  rows: Ranked[],
  size: number,
  pointed: (node: string | null) => void,
): Radial {
  const members = rows.filter((row) => row.node !== source).slice(0, MOST);
  const middle = size / 2;
  const reach = middle - 26;
  const inner = 46;
  // Equal areas for equal numbers of members: the radius grows with the square root.
  const radius = (place: number): number =>
    Math.sqrt(inner ** 2 + ((reach ** 2 - inner ** 2) * place) / Math.max(members.length, 1));
  const room = reach * Math.sqrt(Math.PI / Math.max(members.length, 1)); // side of a member's area
  const letters = Math.max(4, Math.min(16, Math.floor(room / 6.8)));

  const spots = members.map((_, i) => {
    const [r, angle] = [radius(i + 0.5), i * GOLDEN - Math.PI / 3];
    return { x: middle + r * Math.cos(angle), y: middle + r * Math.sin(angle) };
  });

  /** The place on a ring that is farthest from all members (and their labels, below them). */
  function freeSpot(r: number): { x: number; y: number } {
    const candidates = Array.from({ length: 36 }, (_, i) => {
      const angle = (i / 36) * 2 * Math.PI;
      const spot = { x: middle + r * Math.cos(angle), y: middle + r * Math.sin(angle) };
      const gaps = spots.map((one) => Math.hypot(one.x - spot.x, one.y + 8 - spot.y));
      return { spot, room: Math.min(...gaps) };
    });
    return candidates.reduce((best, one) => (one.room > best.room ? one : best)).spot;
  }

  const rings = [5, 10, 20, 40].filter((ring, i) => i === 0 || ring <= members.length);
  const element = svg("svg", {
    viewBox: `0 0 ${size} ${size}`,
    width: size,
    height: size,
    class: "radial",
    tabindex: 0,
    role: "img",
    "aria-label":
      `Members around source ${source} by private rank, nearest first: ` +
      `${members.slice(0, 10).map((row) => row.node).join(", ")}. Arrow keys move along the ranks.`,
  });
  element.append(
    ...rings.flatMap((ring) => {
      const r = radius(Math.min(ring, members.length));
      return [
        svg("circle", { cx: middle, cy: middle, r, class: "ring" }),
        svg("text", { ...freeSpot(r), dy: "0.32em", class: "ring-label" }, `top ${ring}`),
      ];
    }),
    svg("circle", { cx: middle, cy: middle, r: 22, class: "source" }),
    svg("text", { x: middle, y: middle, dy: "0.32em", class: "source-label" }, shorten(source, 5)),
  );

  const groups = new Map<string, SVGGElement>();
  members.forEach((row, i) => {
    const { x, y } = spots[i] as { x: number; y: number };
    const dot = 9 - 4.5 * (i / Math.max(members.length - 1, 1));
    const group = svg(
      "g",
      {
        class: "member",
        pointerenter: () => choose(row),
        pointerleave: () => choose(null),
      },
      svg("circle", { cx: x, cy: y, r: 20, class: "target" }),
      svg("circle", { cx: x, cy: y, r: dot, class: "dot" }),
      svg("text", { x, y: y + dot + 12 }, shorten(row.node, letters)),
    );
    groups.set(row.node, group);
    element.append(group);
  });

  let at = -1;
  element.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (event.key === "Escape") choose(null);
    if (step === undefined || !members.length) return;
    event.preventDefault();
    at = Math.min(Math.max(at + step, 0), members.length - 1);
    choose(members[at] as Ranked);
  });
  element.addEventListener("blur", () => choose(null));

  function highlight(node: string | null): void {
    for (const [name, group] of groups) group.classList.toggle("chosen", name === node);
  }

  function choose(row: Ranked | null): void {
    highlight(row?.node ?? null);
    pointed(row?.node ?? null);
    const group = row && groups.get(row.node);
    if (row && group) {
      showTooltip(group, `Private rank ${row.rank}\n${shorten(row.node, 60)}\nprivate score ${score(row.score)}`);
    } else hideTooltip();
  }

  return { element, highlight };
}
