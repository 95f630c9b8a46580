import type { ChunkPosition } from '../documents/document-records.ts';
import { hasLines, indentLines, joinLines } from '../../core/line-ends.ts';
import { describePlace } from '../documents/describe-place.ts';
import type { MemoryRecord } from '../types.ts';
import { cutToBest } from './cut-text.ts';

/** Where a source is: the name of its document, the headings above it, and its range. */
export interface SourcePosition extends Omit<ChunkPosition, 'index' | 'start' | 'end'> {
  /** Range in the text of the document. */
  readonly startChar: number;
  readonly endChar: number;
}

/** A text in a prompt. */
export interface PackedSource {
  /** From 1; shown as [1] in the text. */
  readonly number: number;
  readonly id: string;
  readonly kind: MemoryRecord['kind'];
  readonly numTokens: number;
  /** Null: a text that is no part of a document. */
  readonly position: SourcePosition | null;
  /** Whether only a part of it is shown, because the budget has no room for all of it. */
  readonly isCut: boolean;
  /** Of a source of the agent memory. Absent: another text. */
  readonly tier?: 'working' | 'semantic' | 'episodic' | 'procedural';
  /** Whose words it quotes: `user`, `assistant`, `tool` or `document`; null: a pattern. Absent: another text. */
  readonly speaker?: string | null;
  /** When it was said; null: a pattern. Absent: another text. */
  readonly saidMs?: number | null;
}

export interface PackedContext {
  readonly text: string;
  readonly sources: readonly PackedSource[];
  /** Of the whole text. */
  readonly numTokens: number;
  /** Results that did not fit. */
  readonly numLeftOut: number;
}

/** A chunk with its position. */
export interface PackChunk {
  readonly id: string;
  readonly text: string;
  readonly position: ChunkPosition;
}

export interface PackItem {
  readonly id: string;
  readonly kind: MemoryRecord['kind'];
  readonly text: string;
  /** Of a chunk. Default: a text that is no part of a document. */
  readonly position?: ChunkPosition | null;
  /** The chunks before and after it. Default: none. */
  readonly neighbours?: readonly PackChunk[];
}

export interface PackOptions {
  readonly tokenBudget: number;
  readonly countTokens: (text: string) => number;
  /** The question, by which a text that is too long is cut. Default: its beginning is kept. */
  readonly query?: string;
}

/** A shorter part of a text says nothing. */
const MIN_CUT_TOKENS = 16;
/** Longer words per token are not text: such a text is cut before its tokens are counted. */
const MAX_CHARS_PER_TOKEN = 16;

/** A source before it has its number. */
interface Source {
  readonly item: PackItem;
  text: string;
  position: SourcePosition | null;
  isCut: boolean;
  /** Indices of the chunks in it. */
  first: number;
  last: number;
}

export function toPosition({ index: _, start, end, ...rest }: ChunkPosition): SourcePosition {
  return { ...rest, startChar: start, endChar: end };
}

/** The document and place of a source, for the model. */
const labelOf = ({ name, headings, ...place }: SourcePosition): string =>
  [`${name}, ${describePlace(place)}`, ...headings].join(' › ');

/**
 * A numbered source. Indents further lines, so that none can pass for a numbered source; and begins a text of several lines below its
 * number, so that its first line cannot pass for the name of a document.
 */
function render({ text, position }: Pick<Source, 'text' | 'position'>, number: number): string {
  if (position === null) return `[${number}]${indentLines(hasLines(text) ? `\n${text}` : ` ${text}`)}\n`;
  return `[${number}] ${joinLines(labelOf(position))}\n  ${indentLines(text)}\n`;
}

const renderAll = (sources: readonly Source[]): string => sources.map((source, i) => render(source, i + 1)).join('');

/**
 * Numbers results in order, with as many tokens as the budget allows: texts that fit are whole, the first that does not fit is
 * cut to its best part, and what remains is filled with the neighbours of chunks.
 */
export function packContext(items: readonly PackItem[], options: PackOptions): PackedContext {
  const { tokenBudget, countTokens, query = '' } = options;
  const sources: Source[] = [];
  let numTokens = 0;
  let numLeftOut = 0;
  let hasCut = false;
  const isTooLong = (text: string, numLeft: number): boolean => text.length > numLeft * MAX_CHARS_PER_TOKEN;

  for (const item of items) {
    const chunk = item.position ?? null;
    // A chunk that overlaps a source is shown with it.
    if (chunk !== null && sources.some((source) => tryJoin(source, { ...item, position: chunk }))) continue;
    const position = chunk === null ? null : toPosition(chunk);
    const whole: Source = { item, text: item.text, position, isCut: false, first: chunk?.index ?? 0, last: chunk?.index ?? 0 }; // prettier-ignore
    const numLeft = tokenBudget - numTokens;
    const cost = isTooLong(item.text, numLeft) ? Infinity : countTokens(render(whole, sources.length + 1));
    if (cost <= numLeft) {
      sources.push(whole);
      numTokens += cost;
      continue;
    }
    const part = hasCut ? null : cut(whole, numLeft);
    if (part === null) {
      numLeftOut++;
      continue;
    }
    hasCut = true;
    sources.push(part.source);
    numTokens += part.cost;
  }

  /** Joins an overlapping or adjacent chunk, if the budget allows. */
  function tryJoin(source: Source, next: PackChunk): boolean {
    const { position } = source;
    if (position === null || source.isCut || position.documentId !== next.position.documentId) return false;
    if (next.position.index >= source.first && next.position.index <= source.last) return true;
    const joined = join(source, next);
    if (joined === null) return false;
    const number = sources.indexOf(source) + 1;
    const growth = countTokens(render(joined, number)) - countTokens(render(source, number));
    if (numTokens + growth > tokenBudget) return false;
    Object.assign(source, joined);
    numTokens += growth;
    return true;
  }

  /** The part of a text that says most about the question; null: there is no room for any. */
  function cut(source: Source, numLeft: number): { source: Source; cost: number } | null {
    const number = sources.length + 1;
    const label = countTokens(render({ ...source, text: '' }, number));
    if (numLeft - label < MIN_CUT_TOKENS) return null;
    const fits = (text: string): boolean =>
      !isTooLong(text, numLeft) && countTokens(render({ ...source, text }, number)) <= numLeft;
    const best = cutToBest(source.text, query, fits);
    if (best === null) return null;
    const text = source.text.slice(best.start, best.end);
    const position = source.position === null ? null : narrow(source.position, source.text, best);
    const part = { ...source, text, position, isCut: true };
    const cost = countTokens(render(part, number));
    return cost > numLeft ? null : { source: part, cost };
  }

  for (const source of sources) for (const neighbour of source.item.neighbours ?? []) tryJoin(source, neighbour);
  return finish(sources, numLeftOut, options);
}

/** Counts the whole text: the tokens of its parts do not always add up, so the last parts may have to go. */
function finish(sources: Source[], numLeftOut: number, { tokenBudget, countTokens }: PackOptions): PackedContext {
  const countAll = (words: string): number => (words === '' ? 0 : countTokens(words));
  const whole = sources.length;
  let text = renderAll(sources);
  let numTokens = countAll(text);
  while (numTokens > tokenBudget) {
    sources.pop();
    text = renderAll(sources);
    numTokens = countAll(text);
  }
  return {
    text,
    sources: sources.map((source, i) => ({
      number: i + 1,
      id: source.item.id,
      kind: source.item.kind,
      numTokens: countTokens(render(source, i + 1)),
      position: source.position,
      isCut: source.isCut,
    })),
    numTokens,
    numLeftOut: numLeftOut + whole - sources.length,
  };
}

/** A source with the chunk right before or after it; null: it is another part of the document. */
function join(source: Source, next: PackChunk): Source | null {
  const { position, first, last } = source;
  if (position === null) return null;
  const { index, start, end, startLine, endLine, startPage, endPage } = next.position;
  if (index === last + 1) {
    const text =
      source.text + between(position.endChar, start) + next.text.slice(Math.max(0, position.endChar - start));
    return { ...source, text, position: { ...position, endChar: end, endLine, endPage }, last: index };
  }
  if (index !== first - 1) return null;
  const text = next.text + between(end, position.startChar) + source.text.slice(Math.max(0, end - position.startChar));
  return { ...source, text, position: { ...position, startChar: start, startLine, startPage }, first: index };
}

/** Chunks without overlap are separated by the break between two blocks. */
const between = (end: number, start: number): string => (end >= start ? '' : '\n');

/**
 * The position of a part of a text. Pages are those of the whole, because a chunk has few; lines, too, where the file has other
 * lines than its text, as a page of HTML has.
 */
function narrow(
  position: SourcePosition,
  text: string,
  { start, end }: { start: number; end: number },
): SourcePosition {
  const numLines = (to: number): number => text.slice(0, to).split(/\r\n|\r|\n/).length - 1;
  const { startLine, endLine, startChar } = position;
  const isByLine = startLine !== null && endLine !== null && numLines(text.length) === endLine - startLine;
  return {
    ...position,
    startChar: startChar + start,
    endChar: startChar + end,
    ...(isByLine ? { startLine: startLine + numLines(start), endLine: startLine + numLines(end) } : {}),
  };
}
