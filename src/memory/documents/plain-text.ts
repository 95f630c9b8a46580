import type { DocumentBlock, ParsedDocument } from './types.ts';

/** A line with its range; the range has no line break. */
export interface Line {
  readonly text: string;
  readonly start: number;
  readonly end: number;
}

export function linesOf(text: string): Line[] {
  const lines: Line[] = [];
  let start = 0;
  for (const { index: end, 0: lineBreak } of text.matchAll(/\r\n|\r|\n/g)) {
    lines.push({ text: text.slice(start, end), start, end });
    start = end + lineBreak.length;
  }
  if (start < text.length || lines.length === 0) lines.push({ text: text.slice(start), start, end: text.length });
  return lines;
}

/** Paragraphs, divided by empty lines. */
export function parsePlainText(text: string): ParsedDocument {
  const blocks: DocumentBlock[] = [];
  let first: Line | null = null;
  let last: Line | null = null;
  const close = (): void => {
    if (first !== null) blocks.push({ kind: 'paragraph', start: first.start, end: last!.end, headings: [] });
    first = null;
  };
  for (const line of linesOf(text)) {
    if (line.text.trim() === '') close();
    else {
      first ??= line;
      last = line;
    }
  }
  close();
  return { text, blocks, pageStarts: null };
}
