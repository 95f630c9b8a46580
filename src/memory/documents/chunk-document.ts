import { estimateTokens } from './estimate-tokens.ts';
import { lastAtMost } from './last-at-most.ts';
import { CHUNK_TOKENS } from './limits.ts';
import type { DocumentBlock, DocumentChunk, ParsedDocument } from './types.ts';

interface Range {
  start: number;
  end: number;
  headings: readonly string[];
  /** Headings of its last block. */
  section: readonly string[];
  /** Without headings. */
  numTokens: number;
  numHeadingTokens: number;
  /** Whether it has its size. */
  isClosed: boolean;
  /** Whether its headings are those of the range before, so that it may overlap it. */
  continues: boolean;
}

/** Where a text may be divided, the best places first. */
const BREAKS = [/\n\s*\n/g, /\n/g, /[.!?…。！？]["')\]»”]*\s+/g, /[,;:]\s+/g, /\s+/g];

/** Offsets at which a text may be divided, of the best kind that leaves parts of at most `maxTokens`. */
function partsOf(text: string, start: number, end: number, maxTokens: number, level = 0): [number, number][] {
  if (estimateTokens(text, start, end) <= maxTokens) return [[start, end]];
  const part = text.slice(start, end);
  if (level === BREAKS.length) {
    // One word longer than a chunk: cut by length, never inside a surrogate pair.
    const half = start + (part.length >> 1);
    const middle = /[\uDC00-\uDFFF]/.test(text[half]!) ? half + 1 : half;
    return [...partsOf(text, start, middle, maxTokens, level), ...partsOf(text, middle, end, maxTokens, level)];
  }
  const parts: [number, number][] = [];
  let from = 0;
  for (const match of part.matchAll(BREAKS[level]!)) {
    const to = match.index + match[0].length;
    parts.push([start + from, start + to]);
    from = to;
  }
  if (from < part.length) parts.push([start + from, end]);
  return parts.flatMap(([a, b]) => partsOf(text, a, b, maxTokens, level + 1));
}

const isSame = (a: readonly string[], b: readonly string[]): boolean =>
  a.length === b.length && a.every((title, i) => title === b[i]);

/** One part in four ends a chunk that is large enough: after an edit, the following chunks soon have their old borders again. */
const isBorder = (text: string, start: number, end: number): boolean => {
  let hash = 0x811c9dc5;
  for (let i = start; i < end; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return (hash >>> 8) % 4 === 0;
};

/** Adds blocks to a chunk until it has its size. A new section begins a new chunk; small declarations of code share one. */
function joinBlocks({ text, blocks }: ParsedDocument): Range[] {
  const { target, max } = CHUNK_TOKENS;
  const ranges: Range[] = [];
  let current: Range | null = null;
  const add = (start: number, end: number, { kind, headings }: DocumentBlock): void => {
    const numTokens = estimateTokens(text, start, end);
    const isSection = current !== null && !isSame(current.section, headings);
    const least = kind === 'code' ? target / 4 : 1;
    const isFull =
      current !== null &&
      (current.numTokens + current.numHeadingTokens + numTokens > max ||
        current.isClosed ||
        (isSection && current.numTokens >= least));
    if (current === null || isFull) {
      const continues = current !== null && !isSection;
      current = {
        start,
        end,
        headings,
        section: headings,
        numTokens: 0,
        numHeadingTokens: 0,
        continues,
        isClosed: false,
      };
      ranges.push(current);
    }
    // A heading alone is no chunk: it belongs to the first section below it, as imports do to the code below them.
    if (current.numTokens < numTokens) current.headings = headings;
    current.end = end;
    current.section = headings;
    if (kind === 'heading') current.numHeadingTokens += numTokens;
    else current.numTokens += numTokens;
    current.isClosed = current.numTokens >= target || (current.numTokens >= target / 2 && isBorder(text, start, end));
  };
  for (const block of blocks) {
    for (const [start, end] of partsOf(text, block.start, block.end, max)) add(start, end, block);
  }
  return ranges;
}

/** The start of the last sentences or lines before `end` that have at most the tokens of an overlap. */
function overlapStart(text: string, start: number, end: number): number {
  const parts = partsOf(text, start, end, CHUNK_TOKENS.overlap);
  let from = end;
  let numTokens = 0;
  for (const [a, b] of parts.toReversed()) {
    numTokens += estimateTokens(text, a, b);
    if (numTokens > CHUNK_TOKENS.overlap) break;
    from = a;
  }
  return from;
}

/** Line numbers of increasing offsets. */
function createLineCounter(text: string): (offset: number) => number {
  const starts = [0];
  for (const { index, 0: end } of text.matchAll(/\r\n|\r|\n/g)) starts.push(index + end.length);
  return (offset) => lastAtMost(starts, offset) + 1;
}

/** Divides a document at the borders of its structure; chunks of one section overlap a little. */
export function chunkDocument(document: ParsedDocument): DocumentChunk[] {
  const { text, pageStarts } = document;
  const lineAt = document.lineAt ?? createLineCounter(text);
  const ranges = joinBlocks(document);
  return ranges.map(({ start: own, end, headings, continues }, i) => {
    const start = continues ? overlapStart(text, ranges[i - 1]!.start, own) : own;
    const words = text.slice(start, end).trimEnd();
    const last = start + words.length - 1;
    return {
      text: words,
      start,
      end: last + 1,
      headings,
      startLine: pageStarts === null ? lineAt(start) : null,
      endLine: pageStarts === null ? lineAt(last) : null,
      startPage: pageStarts === null ? null : lastAtMost(pageStarts, start) + 1,
      endPage: pageStarts === null ? null : lastAtMost(pageStarts, last) + 1,
    };
  });
}
