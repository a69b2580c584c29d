/** Which list is shown: a place (data set and member), a mechanism, an epsilon. */

import { choice } from "./controls";
import { distinct, plain, type MemberList } from "./data";
import { h } from "./dom";

export const samePlace = (a: MemberList, b: MemberList): boolean =>
  a.dataset === b.dataset && a.member === b.member;

/** `lists` must not be empty, and each must have an epsilon. `changed` hears of the first one, too. */
export function picker(lists: MemberList[], changed: (list: MemberList) => void): HTMLElement {
  const alone = distinct(lists, (list) => list.dataset).length === 1;
  const placeOf = (list: MemberList): string => (alone ? list.member : `${list.dataset}, ${list.member}`);

  const places = choice<string>({ label: "For", changed: (v) => update(v) });
  const mechanisms = choice<string>({ label: "Mechanism", changed: () => update() });
  const epsilons = choice<number>({ label: "Privacy loss ε", text: plain, changed: () => update() });

  function update(wanted?: string): void {
    const place = places.offer(distinct(lists, placeOf), wanted);
    const here = lists.filter((list) => placeOf(list) === place);
    const mechanism = mechanisms.offer(distinct(here, (list) => list.mechanism));
    const own = here.filter((list) => list.mechanism === mechanism);
    const epsilon = epsilons.offer(distinct(own, (list) => list.epsilon as number).sort((a, b) => a - b));
    changed(own.find((list) => list.epsilon === epsilon) as MemberList);
  }

  update();
  return h("div", { class: "controls" }, places.element, mechanisms.element, epsilons.element);
}
