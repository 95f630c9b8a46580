import { trimEndOf } from '../../core/trim.ts';
import { clipTitle } from './limits.ts';
import { type Line, linesOf } from './plain-text.ts';
import type { DocumentBlock, ParsedDocument } from './types.ts';

const FENCE = /^ {0,3}(`{3,}|~{3,})/;
const HEADING = /^ {0,3}(#{1,6})(?=[ \t]|$)/;
const UNDERLINE = /^ {0,3}(=+|-+)[ \t]*$/;
const LIST_ITEM = /^[ \t]*(?:[-*+]|\d{1,9}[.)])[ \t]+/;
const TABLE_ROW = /^ {0,3}\|.*\|[ \t]*$|^[^|\n]+\|[^\n]*\|?/;
const TABLE_CELL_RULE = /^:?-+:?$/;
const INDENTED = /^(?: {2,}|\t)/;

/** A line such as `|---|:-:|`. */
function isTableRule(line: string): boolean {
  const cells = line.trim().split('|');
  if (cells.length > 1 && cells[0] === '') cells.shift();
  if (cells.length > 1 && cells.at(-1) === '') cells.pop();
  return cells.every((cell) => TABLE_CELL_RULE.test(cell.trim()));
}

/** The title of a heading without the marks around it: `## Title ##`. */
function titleOf(line: string, marks: string): string {
  const text = line.slice(line.indexOf(marks) + marks.length).trim();
  const title = trimEndOf(text, '#');
  return title === '' || /\s$/.test(title) ? title.trimEnd() : text;
}

/** The number of lines of the block that begins at `index`, and its kind. */
function measure(lines: readonly Line[], index: number): { kind: DocumentBlock['kind']; count: number } {
  const at = (i: number): string => lines[i]?.text ?? '';
  const isBlank = (i: number): boolean => at(i).trim() === '';
  const fence = FENCE.exec(at(index));
  if (fence !== null) {
    const mark = fence[1]!;
    let i = index + 1;
    // An unclosed fence reaches to the end.
    while (i < lines.length) {
      const end = FENCE.exec(lines[i]!.text);
      if (end !== null && end[1]![0] === mark[0] && end[1]!.length >= mark.length) break;
      i++;
    }
    return { kind: 'code', count: Math.min(i + 1, lines.length) - index };
  }
  if (at(index).includes('|') && isTableRule(at(index + 1))) {
    let i = index + 2;
    while (TABLE_ROW.test(at(i))) i++;
    return { kind: 'table', count: i - index };
  }
  const isList = LIST_ITEM.test(at(index));
  let i = index + 1;
  for (; i < lines.length; i++) {
    if (isBlank(i)) {
      // A list continues after an empty line with another item or an indented line.
      if (!isList || !(LIST_ITEM.test(at(i + 1)) || INDENTED.test(at(i + 1)))) break;
      continue;
    }
    if ((HEADING.test(at(i)) || FENCE.test(at(i))) && !(isList && INDENTED.test(at(i)))) break;
    if (!isList && LIST_ITEM.test(at(i))) break;
    if (!isList && at(i).includes('|') && isTableRule(at(i + 1)) && at(i + 1).includes('|')) break;
  }
  return { kind: isList ? 'list' : 'paragraph', count: i - index };
}

/** Headings, paragraphs, lists, tables and code blocks of Markdown, as ranges of the file. */
export function parseMarkdown(text: string): ParsedDocument {
  const lines = linesOf(text);
  const blocks: DocumentBlock[] = [];
  const path: { level: number; title: string }[] = [];
  const push = (kind: DocumentBlock['kind'], from: number, count: number): void => {
    const [start, end] = [lines[from]!.start, lines[from + count - 1]!.end];
    blocks.push({ kind, start, end, headings: path.map(({ title }) => title).filter((title) => title !== '') });
  };
  const openSection = (level: number, title: string): void => {
    while (path.length > 0 && path.at(-1)!.level >= level) path.pop();
    path.push({ level, title: clipTitle(title) });
  };
  let index = 0;
  while (index < lines.length) {
    const line = lines[index]!.text;
    if (line.trim() === '') {
      index++;
      continue;
    }
    const heading = HEADING.exec(line);
    if (heading !== null) {
      openSection(heading[1]!.length, titleOf(line, heading[1]!));
      push('heading', index, 1);
      index++;
      continue;
    }
    const { kind, count } = measure(lines, index);
    // A paragraph of one line above === or --- is a heading; measure() reads the underline as its second line.
    const underline = kind === 'paragraph' && count >= 2 ? UNDERLINE.exec(lines[index + 1]!.text) : null;
    if (underline !== null) {
      openSection(underline[1]!.startsWith('=') ? 1 : 2, line);
      push('heading', index, 2);
      index += 2;
      continue;
    }
    push(kind, index, count);
    index += count;
  }
  return { text, blocks, pageStarts: null };
}
