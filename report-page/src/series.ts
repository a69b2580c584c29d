/** How a mechanism looks: colour, dash and marker, so that colour is never alone. */

import * as Plot from "@observablehq/plot";

export interface Look {
  colour: string;
  dash: string;
  symbol: Plot.SymbolType | null; // levels have none
}

const COLOURS = 8;
const DASHES = ["none", "8 4", "2 3", "10 3 2 3", "5 3", "1 4", "14 4", "6 2 1 2 1 2"];
const LEVEL_DASHES = ["1 4", "1 4 7 4", "5 5", "3 3", "12 5", "1 3 1 9", "9 3 1 3 1 3"];
const SYMBOLS: Plot.SymbolType[] = ["circle", "square", "triangle", "diamond", "star", "wye", "cross"];

export function lookOf(position: number): Look {
  return {
    colour: `var(--series-${position % COLOURS})`,
    dash: DASHES[position % DASHES.length] as string,
    symbol: SYMBOLS[position % SYMBOLS.length] as Plot.SymbolType,
  };
}

/** A level, which does not depend on epsilon: a grey line without markers, with a dash of its own. */
export function levelLook(position: number): Look {
  return { colour: "var(--muted)", dash: LEVEL_DASHES[position % LEVEL_DASHES.length] as string, symbol: null };
}

/** A piece of the line with its marker, for the switch beside a mechanism's name. */
export function swatch(look: Look): SVGElement | HTMLElement {
  const picture = Plot.plot({
    width: 34,
    height: 14,
    margin: 0,
    axis: null,
    x: { domain: [0, 2] },
    y: { domain: [0, 2] },
    marks: [
      Plot.ruleY([1], { stroke: look.colour, strokeDasharray: look.dash, strokeWidth: 2, strokeLinecap: look.symbol ? "butt" : "round" }),
      ...(look.symbol ? [Plot.dot([[1, 1]], { fill: look.colour, symbol: look.symbol, r: 4 })] : []),
    ],
  });
  picture.setAttribute("aria-hidden", "true");
  return picture;
}
