import { AUDIT_KIND } from '../../memory/types.ts';
import type { CliIo } from '../io.ts';
import { escapeLine } from '../safe-text.ts';
import { cutToWidth } from '../terminal/text-width.ts';

/** Line width without a terminal. */
const PIPED_COLUMNS = 200;

/** Untrusted text, escaped and cut to one line of at most `columns` columns. */
export function oneLine(text: string, columns: number): string {
  const start = text.slice(0, 4 * columns);
  return cutToWidth(escapeLine(start.replaceAll(/\s+/g, ' ').trim()), columns);
}

export function columnsOf({ stdout }: Pick<CliIo, 'stdout'>): number {
  return stdout.isTerminal ? Math.max(20, stdout.columns) : PIPED_COLUMNS;
}

/** Audit entries are stored under an older name. */
export const kindName = (kind: string): string => (kind === AUDIT_KIND ? 'audit' : kind);

export const dayOf = (ms: number): string => new Date(ms).toISOString().slice(0, 10);
export const dateOf = (ms: number): string => new Date(ms).toISOString().slice(0, 16).replace('T', ' ');
export const roundTo = (value: number | null, digits: number): string => (value === null ? '–' : value.toFixed(digits));
