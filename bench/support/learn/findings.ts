import { printTable } from '../report.ts';

export type Figures = Record<string, number | boolean | null>;

/** A promised figure with its uncertainty and its control. */
export interface FigureRow {
  readonly value: string;
  readonly interval: string;
  readonly control: string;
}

/** Results of parts; sent from the process of a part to the bench. */
export interface Findings {
  /** For the JSON line, in its order. */
  readonly figures: Figures;
  readonly rows: Record<string, FigureRow>;
}

/** Promised figures exist from the start: an unmeasured one is null in the JSON line, not missing. */
export const createFindings = (promised: readonly string[] = []): Findings => ({
  figures: Object.fromEntries(promised.map((name) => [name, null])),
  rows: {},
});

export function addFindings(to: Findings, { figures, rows }: Findings): void {
  Object.assign(to.figures, figures);
  Object.assign(to.rows, rows);
}

export function showFindings({ figures, rows }: Findings, promised: readonly string[]): void {
  printTable([
    ['figure', 'value', '95 %', 'control'],
    ...promised.map((name) => {
      const row = rows[name];
      if (row !== undefined) return [name, row.value, row.interval, row.control];
      return [name, String(figures[name] ?? 'not measured'), '–', '–'];
    }),
  ]);
}
