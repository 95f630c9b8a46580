import type { CliIo } from '../io.ts';
import { formatTable } from '../format.ts';
import { escapeLine } from '../safe-text.ts';

/** Where nobody looks at it a line may be long, but not a whole document. */
const PIPED_COLUMNS = 200;

/** Text of strangers on one line of at most `room` characters. */
export function oneLine(text: string, room: number): string {
  const clean = escapeLine(text.slice(0, 4 * room).replaceAll(/\s+/g, ' ').trim()); // prettier-ignore
  return clean.length <= room ? clean : `${clean.slice(0, Math.max(1, room - 1))}…`;
}

export function columnsOf({ stdout }: Pick<CliIo, 'stdout'>): number {
  return stdout.isTerminal ? Math.max(20, stdout.columns) : PIPED_COLUMNS;
}

/** A table whose last column is cut where the line ends; cells are made harmless. */
export function fitTable(io: Pick<CliIo, 'stdout'>, rows: readonly (readonly string[])[]): string {
  const columns = columnsOf(io);
  const clean = rows.map((row) => row.map((cell, i) => (i === row.length - 1 ? cell : oneLine(cell, 40))));
  const widths = clean[0]!.slice(0, -1).map((_, i) => Math.max(...clean.map((row) => row[i]!.length)));
  const room = Math.max(10, columns - widths.reduce((sum, width) => sum + width + 2, 0));
  return formatTable(clean.map((row) => [...row.slice(0, -1), oneLine(row.at(-1)!, room)]));
}

export const dateOf = (ms: number): string => new Date(ms).toISOString().slice(0, 16).replace('T', ' ');
export const roundTo = (value: number | null, digits: number): string => (value === null ? '–' : value.toFixed(digits));
