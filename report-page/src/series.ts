/** How a mechanism looks: colour, dash and marker, so that colour is never alone. */

import * as Plot from "@observablehq/plot";

export interface Look {
  colour: string;
  dash: string;
  symbol: Plot.SymbolType;
}

const COLOURS = 8;
const DASHES = ["none", "8 4", "2 3", "10 3 2 3", "5 3", "1 4", "14 4", "6 2 1 2 1 2"];
const SYMBOLS: Plot.SymbolType[] = ["circle", "square", "triangle", "diamond", "star", "wye", "cross"];

export function lookOf(position: number): Look {
  return {
    colour: `var(--series-${position % COLOURS})`,
    dash: DASHES[position % DASHES.length] as string,
    symbol: SYMBOLS[position % SYMBOLS.length] as Plot.SymbolType,
  };
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
      Plot.ruleY([1], { stroke: look.colour, strokeDasharray: look.dash, strokeWidth: 2 }),
      Plot.dot([[1, 1]], { fill: look.colour, symbol: look.symbol, r: 4 }),
    ],
  });
  picture.setAttribute("aria-hidden", "true");
  return picture;
}
