import type { CliIo, TextSink } from '../io.ts';

/**
 * Colour only where a person looks at it. `FORCE_COLOR` is the last word, as in Node.js itself: 0 is none, anything else
 * is colour in a pipe, too. An empty variable says nothing.
 */
export function hasColour({ environment }: Pick<CliIo, 'environment'>, sink: Pick<TextSink, 'isTerminal'>): boolean {
  const forced = environment['FORCE_COLOR'] ?? '';
  if (forced !== '') return forced !== '0' && forced !== 'false';
  return sink.isTerminal && (environment['NO_COLOR'] ?? '') === '' && environment['TERM'] !== 'dumb';
}

const STYLES = {
  bold: [1, 22],
  dim: [2, 22],
  red: [31, 39],
  green: [32, 39],
  yellow: [33, 39],
  cyan: [36, 39],
} as const;

export type Style = keyof typeof STYLES;

/** Text that was made harmless before, in a style; every line by itself, for a pager forgets what came above. */
export function paint(text: string, style: Style, isColoured: boolean): string {
  if (!isColoured || text === '') return text;
  const [on, off] = STYLES[style];
  return text
    .split('\n')
    .map((line) => (line === '' ? line : `\x1b[${on}m${line}\x1b[${off}m`))
    .join('\n');
}
