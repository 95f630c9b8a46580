import type { CliIo, TextSink } from '../io.ts';

/** Whether to use colour: on a terminal, unless `FORCE_COLOR` or `NO_COLOR` decide, in this order. Empty counts as unset. */
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

/** Styles escaped text, line by line because pagers reset the style at line ends. */
export function paint(text: string, style: Style, isColoured: boolean): string {
  if (!isColoured || text === '') return text;
  const [on, off] = STYLES[style];
  return text
    .split('\n')
    .map((line) => (line === '' ? line : `\x1b[${on}m${line}\x1b[${off}m`))
    .join('\n');
}
