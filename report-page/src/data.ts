/** The page's data, as `edgeveil.report.page` packs it, and questions about it. */

export interface Result {
  experiment: string;
  dataset: string;
  mechanism: string;
  epsilon: number | null;
  metric: string;
  scope: string;
  mean: number;
  low: number;
  high: number;
  n_sources: number;
  repeats: number;
  paper_value: number | null;
}

export interface Listed {
  node: string;
  score: number;
  first: number | null;
  last: number | null;
  why: string;
  right: boolean | null;
  chance: number | null;
  strength: string;
}

export interface MemberList {
  dataset: string;
  member: string;
  mechanism: string;
  epsilon: number | null;
  private: boolean;
  alone: boolean;
  promise: string;
  in_short: string;
  charged: string;
  remark: string;
  group: string;
  truth: string;
  rows: Listed[];
}

export interface Charges {
  ledger: string;
  words: string[];
  cap: number;
  steps: [string, number][];
  columns: string[];
  rows: (string | number | null)[][];
}

/** Predicted classes; all that stands here was released. */
export interface Predictions {
  classes: string[];
  predicted: number[];
  n_nodes: number;
  n_labelled: number;
  n_abstained: number;
  threshold: number;
  epsilon: number | null;
  private: boolean;
  promise: string;
  in_short: string;
  uses_graph: boolean;
  without: string;
  noise: number;
  quality: Quality | null;
  examples: Example[];
}

/** Measures on the nodes set aside. */
export interface Quality {
  count: number;
  coverage: number;
  accuracy: number;
  low: number;
  high: number;
  without: number;
  confusion: number[][];
  recall: (number | null)[];
  precision: (number | null)[];
  average_precision: (number | null)[];
  average_precision_without: (number | null)[];
  calibration: [number, number, number][];
}

export interface Example {
  node: string;
  predicted: number;
  probability: number;
  without: number;
  heard: number[];
}

export interface Page {
  summary: string[];
  predictions: Predictions | null;
  results: Result[];
  lists: MemberList[];
  notes: string[];
  charges: Charges | null;
}

type Row = [string, number, number | null, number | null, string, boolean | null, number | null, string];

interface Packed extends Omit<Page, "results" | "lists"> {
  results: { columns: (keyof Result)[]; rows: unknown[][] };
  lists: (Omit<MemberList, "rows"> & { rows: Row[] })[];
}

export function unpack(text: string): Page {
  const packed = JSON.parse(text) as Packed;
  const { columns, rows } = packed.results;
  return {
    ...packed,
    results: rows.map(
      (row) => Object.fromEntries(columns.map((name, i) => [name, row[i]])) as unknown as Result,
    ),
    lists: packed.lists.map((list) => ({
      ...list,
      rows: list.rows.map(([node, score, first, last, why, right, chance, strength]) => ({
        node, score, first, last, why, right, chance, strength,
      })),
    })),
  };
}

/** The different values, in order of first appearance. */
export function distinct<T, V>(rows: Iterable<T>, of: (row: T) => V): V[] {
  return [...new Set(Array.from(rows, of))];
}

/** A mechanism that is charged nothing, or has no epsilon at all, is a level and not a curve. */
export function isLevel(rows: Result[]): boolean {
  return rows.every((row) => row.epsilon === null || row.epsilon === 0);
}

/** A number for people: 0.943, 23.5, 1.2e-6. */
export function figure(value: number): string {
  const size = Math.abs(value);
  const text = size !== 0 && size < 0.001 ? value.toExponential(1) : value.toFixed(size >= 1000 ? 0 : size >= 10 ? 1 : 3);
  return text.replaceAll("-", "\u2212");
}

/** A released score, with three digits that count. */
export function score(value: number): string {
  const size = Math.abs(value);
  const text = size !== 0 && (size < 1e-4 || size >= 1e6) ? value.toExponential(2) : String(Number(value.toPrecision(3)));
  return text.replaceAll("-", "\u2212");
}

/** An epsilon for people, without trailing zeros. */
export function plain(epsilon: number): string {
  return String(Number(epsilon.toPrecision(6)));
}
