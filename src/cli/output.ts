import type { CliIo } from './io.ts';
import { createProgress, type Progress } from './progress.ts';
import { escapeForTerminal, escapeLine } from './safe-text.ts';

/** How a command speaks: results on stdout, everything about them on stderr, one document with --json. */
export interface Output {
  readonly isJson: boolean;
  /** A piece of a model's text, exactly as it is when piped, made harmless on a terminal; nothing with --json. */
  text(piece: string): void;
  /** Lines for people, on stdout; nothing with --json. */
  lines(text: string): void;
  /** The one document of --json; nothing without. */
  document(value: unknown): void;
  /** A remark on stderr; nothing with --json. */
  note(text: string): void;
  /** A remark that only matters to someone watching: on a terminal, dim. */
  aside(text: string): void;
  /** Shows how far something has come; silent with --json. */
  progress(): Progress;
}

/** Colour only where a person looks at it and has not asked for none. */
export function hasColour({ environment, stderr }: Pick<CliIo, 'environment' | 'stderr'>): boolean {
  return stderr.isTerminal && (environment['NO_COLOR'] ?? '') === '' && environment['TERM'] !== 'dumb';
}

export function createOutput(io: CliIo, isJson: boolean): Output {
  const { stdout, stderr } = io;
  const dim = (text: string): string => (hasColour(io) ? `\x1b[2m${text}\x1b[22m` : text);
  const cleanLines = (text: string): string => text.split('\n').map(escapeLine).join('\n');
  return {
    isJson,
    text(piece) {
      if (!isJson && piece !== '') stdout.write(stdout.isTerminal ? escapeForTerminal(piece) : piece);
    },
    lines(text) {
      if (!isJson) stdout.write(`${cleanLines(text)}\n`);
    },
    document(value) {
      if (isJson) stdout.write(`${JSON.stringify(value)}\n`);
    },
    note(text) {
      if (!isJson) stderr.write(`${cleanLines(text)}\n`);
    },
    aside(text) {
      if (!isJson && stderr.isTerminal) stderr.write(`${dim(cleanLines(text))}\n`);
    },
    progress: () => createProgress({ sink: isJson ? null : stderr, now: io.now }),
  };
}
