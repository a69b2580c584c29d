/** The page's data, as `edgeveil.report.page` packs it, and questions about it. */

export interface Result {
  experiment: string;
  dataset: string;
  mechanism: string;
  epsilon: number | null;
  metric: string;
  scope: string;
  mean: number;
  low: number | null;
  high: number | null;
  n_sources: number;
  repeats: number;
  paper_value: number | null;
}

export interface Ranked {
  rank: number;
  node: string;
  score: number;
  trueRank: number | null;
  neighbour: boolean | null;
}

export interface Ranking {
  dataset: string;
  source: string;
  epsilon: number | null;
  mechanism: string;
  private: boolean;
  rows: Ranked[];
}

export interface Promise_ {
  mechanism: string;
  epsilon: number | null;
  text: string;
}

export interface Page {
  title: string;
  summary: string[];
  facts: [string, string][];
  results: Result[];
  rankings: Ranking[];
  guarantees: Promise_[];
  notes: string[];
}

type PackedRow = [number, string, number, number | null, boolean | null];

interface Packed extends Omit<Page, "results" | "rankings"> {
  results: { columns: (keyof Result)[]; rows: unknown[][] };
  rankings: (Omit<Ranking, "rows"> & { rows: PackedRow[] })[];
}

export function unpack(text: string): Page {
  const packed = JSON.parse(text) as Packed;
  const { columns, rows } = packed.results;
  return {
    ...packed,
    results: rows.map(
      (row) => Object.fromEntries(columns.map((name, i) => [name, row[i]])) as unknown as Result,
    ),
    rankings: packed.rankings.map((ranking) => ({
      ...ranking,
      rows: ranking.rows.map(([rank, node, score, trueRank, neighbour]) => ({
        rank,
        node,
        score,
        trueRank,
        neighbour,
      })),
    })),
  };
}

/** The different values, in order of first appearance. */
export function distinct<T, V>(rows: Iterable<T>, of: (row: T) => V): V[] {
  return [...new Set(Array.from(rows, of))];
}

/** A mechanism that spends nothing, or has no epsilon at all, is a level and not a curve. */
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
