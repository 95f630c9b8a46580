import type { CliIo } from '../io.ts';
import { escapeLine } from '../safe-text.ts';
import { cutToWidth } from '../terminal/text-width.ts';

/** Where nobody looks at it a line may be long, but not a whole document. */
const PIPED_COLUMNS = 200;

/** Text of strangers on one line of at most `room` columns. */
export function oneLine(text: string, room: number): string {
  return cutToWidth(
    escapeLine(
      text
        .slice(0, 4 * room)
        .replaceAll(/\s+/g, ' ')
        .trim(),
    ),
    room,
  );
}

export function columnsOf({ stdout }: Pick<CliIo, 'stdout'>): number {
  return stdout.isTerminal ? Math.max(20, stdout.columns) : PIPED_COLUMNS;
}

export const dateOf = (ms: number): string => new Date(ms).toISOString().slice(0, 16).replace('T', ' ');
export const roundTo = (value: number | null, digits: number): string => (value === null ? '–' : value.toFixed(digits));
