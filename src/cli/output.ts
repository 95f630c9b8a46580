import type { CliIo } from './io.ts';
import { createProgress, type Progress } from './progress.ts';
import { escapeForTerminal, escapeLine, toSafeJson } from './safe-text.ts';
import { hasColour, paint } from './terminal/colour.ts';
import { createMarkdownPainter } from './terminal/markdown.ts';
import { layDetails, layTable } from './terminal/table.ts';

/** Output of a command: results on stdout, remarks on stderr, a single document with --json. */
export interface Output {
  readonly isJson: boolean;
  /** A piece of model output: unchanged in a pipe, escaped on a terminal. No-op with --json. */
  text(piece: string): void;
  /** A piece of an answer in Markdown, painted on a terminal with colours; null ends the answer. */
  markdown(piece: string | null): void;
  /** Lines on stdout. No-op with --json. */
  lines(text: string): void;
  /** A table on stdout, cut to the width of a terminal. No-op with --json. */
  table(head: readonly string[] | null, rows: readonly (readonly string[])[]): void;
  /** Names and values on stdout, wrapped to the width of a terminal. No-op with --json. */
  details(rows: readonly (readonly [string, string])[]): void;
  /** The document of --json; no-op without it. */
  document(value: unknown): void;
  /** A remark on stderr. No-op with --json. */
  note(text: string): void;
  /** A dimmed remark, only on a terminal. */
  aside(text: string): void;
  /** A progress display; silent with --json. */
  progress(): Progress;
}

const MIN_COLUMNS = 20;

/** All text from models, files and servers is escaped here before it is shown. */
export function createOutput(io: CliIo, isJson: boolean): Output {
  const { stdout, stderr } = io;
  const cleanLines = (text: string): string => text.split('\n').map(escapeLine).join('\n');
  const columns = (): number | null => (stdout.isTerminal ? Math.max(MIN_COLUMNS, stdout.columns || 80) : null);
  const writeLines = (lines: readonly string[]): void => stdout.write(`${lines.join('\n')}\n`);
  const painter = !isJson && hasColour(io, stdout) ? createMarkdownPainter() : null;
  return {
    isJson,
    markdown(piece) {
      if (painter === null) return piece === null ? undefined : this.text(piece);
      stdout.write(piece === null ? painter.end() : painter.push(escapeForTerminal(piece)));
    },
    text(piece) {
      if (!isJson && piece !== '') stdout.write(stdout.isTerminal ? escapeForTerminal(piece) : piece);
    },
    lines(text) {
      if (!isJson) stdout.write(`${cleanLines(text)}\n`);
    },
    table(head, rows) {
      if (isJson) return;
      const cells = (head === null ? rows : [head, ...rows]).map((row) => row.map(escapeLine));
      const [first, ...others] = layTable(cells, columns());
      if (first === undefined) return;
      writeLines([head === null ? first : paint(first, 'bold', hasColour(io, stdout)), ...others]);
    },
    details(rows) {
      if (isJson || rows.length === 0) return;
      const escaped = rows.map(([name, value]) => [escapeLine(name), escapeLine(value)] as const);
      writeLines(layDetails(escaped, columns()));
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
