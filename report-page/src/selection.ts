/** Which ranking is shown: a place (data set and source), a mechanism, an epsilon. */

import { choice, slider } from "./controls";
import { distinct, plain, type Ranking } from "./data";
import { h } from "./dom";

export interface Picker {
  element: HTMLElement;
  ranking(): Ranking;
  /** Show the same ranking as another picker, where it is offered here too. */
  follow(ranking: Ranking): void;
}

export const placeOf = (ranking: Ranking): string => `${ranking.dataset}, source ${ranking.source}`;

/** `rankings` must not be empty, and each must have an epsilon. */
export function picker(rankings: Ranking[], changed: (ranking: Ranking) => void): Picker {
  let place = "";
  let mechanism = "";
  let epsilon = 0;

  const places = choice<string>({ label: "For", changed: (v) => update(v, mechanism, epsilon) });
  const mechanisms = choice<string>({ label: "Mechanism", changed: (v) => update(place, v, epsilon) });
  const epsilons = slider({
    label: "Privacy loss ε =",
    text: plain,
    changed: (v) => update(place, mechanism, v),
  });

  function offer(wantedPlace?: string, wantedMechanism?: string, wantedEpsilon?: number): void {
    place = places.offer(distinct(rankings, placeOf), wantedPlace);
    const here = rankings.filter((ranking) => placeOf(ranking) === place);
    mechanism = mechanisms.offer(distinct(here, (ranking) => ranking.mechanism), wantedMechanism);
    const own = here.filter((ranking) => ranking.mechanism === mechanism);
    const steps = distinct(own, (ranking) => ranking.epsilon as number).sort((a, b) => a - b);
    epsilon = epsilons.offer(steps, wantedEpsilon);
  }

  function update(...wanted: [string, string, number]): void {
    offer(...wanted);
    changed(ranking());
  }

  const ranking = (): Ranking =>
    rankings.find(
      (one) => placeOf(one) === place && one.mechanism === mechanism && one.epsilon === epsilon,
    ) as Ranking;

  offer();
  return {
    element: h("div", { class: "controls" }, places.element, mechanisms.element, epsilons.element),
    ranking,
    follow(other) {
      if (rankings.includes(other) && other !== ranking()) {
        update(placeOf(other), other.mechanism, other.epsilon as number);
      }
    },
  };
}
