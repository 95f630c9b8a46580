import type { CliIo } from './io.ts';
import { createProgress, type Progress } from './progress.ts';
import { escapeForTerminal, escapeLine, toSafeJson } from './safe-text.ts';
import { hasColour, paint } from './terminal/colour.ts';
import { layDetails, layTable } from './terminal/table.ts';

/** How a command speaks: results on stdout, everything about them on stderr, one document with --json. */
export interface Output {
  readonly isJson: boolean;
  /** A piece of a model's text, exactly as it is when piped, made harmless on a terminal; nothing with --json. */
  text(piece: string): void;
  /** Lines for people, on stdout; nothing with --json. */
  lines(text: string): void;
  /** Rows below a head, or none, on stdout: cut to fit a terminal, whole elsewhere. Nothing with --json. */
  table(head: readonly string[] | null, rows: readonly (readonly string[])[]): void;
  /** Names and values on stdout: broken to fit a terminal. Nothing with --json. */
  details(rows: readonly (readonly [string, string])[]): void;
  /** The one document of --json; nothing without. */
  document(value: unknown): void;
  /** A remark on stderr; nothing with --json. */
  note(text: string): void;
  /** A remark that only matters to someone watching: on a terminal, dim. */
  aside(text: string): void;
  /** Shows how far something has come; silent with --json. */
  progress(): Progress;
}

/** Narrower than this nothing can be shown; a terminal that says 0 does not know. */
const MIN_COLUMNS = 20;

/** Every text of a model, of a file or of a server passes here on its way to the screen. */
export function createOutput(io: CliIo, isJson: boolean): Output {
  const { stdout, stderr } = io;
  const cleanLines = (text: string): string => text.split('\n').map(escapeLine).join('\n');
  const columns = (): number | null => (stdout.isTerminal ? Math.max(MIN_COLUMNS, stdout.columns || 80) : null);
  const writeLines = (lines: readonly string[]): void => stdout.write(`${lines.join('\n')}\n`);
  return {
    isJson,
    text(piece) {
      if (!isJson && piece !== '') stdout.write(stdout.isTerminal ? escapeForTerminal(piece) : piece);
    },
    lines(text) {
      if (!isJson) stdout.write(`${cleanLines(text)}\n`);
    },
    table(head, rows) {
      if (isJson) return;
      const all = head === null ? rows : [head, ...rows];
      const [first, ...rest] = layTable(
        all.map((row) => row.map(escapeLine)),
        columns(),
      );
      if (first === undefined) return;
      writeLines([head === null ? first : paint(first, 'bold', hasColour(io, stdout)), ...rest]);
    },
    details(rows) {
      if (isJson || rows.length === 0) return;
      writeLines(
        layDetails(
          rows.map(([name, value]) => [escapeLine(name), escapeLine(value)] as const),
          columns(),
        ),
      );
    },
    document(value) {
      if (isJson) stdout.write(`${toSafeJson(value)}\n`);
    },
    note(text) {
      if (!isJson) stderr.write(`${cleanLines(text)}\n`);
    },
    aside(text) {
      if (!isJson && stderr.isTerminal) stderr.write(`${paint(cleanLines(text), 'dim', hasColour(io, stderr))}\n`);
    },
    progress: () => createProgress({ sink: isJson ? null : stderr, now: io.now }),
  };
}
