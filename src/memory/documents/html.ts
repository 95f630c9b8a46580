import { type DefaultTreeAdapterTypes, parse } from 'parse5';
import { RuvLLMError } from '../../core/errors.ts';
import { lastAtMost } from './last-at-most.ts';
import { clipTitle, DOCUMENT_LIMITS } from './limits.ts';
import type { DocumentBlock, ParsedDocument } from './types.ts';

type Node = DefaultTreeAdapterTypes.ChildNode;
type Element = DefaultTreeAdapterTypes.Element;

/** Elements without text for readers; navigation repeats on every page of a site. */
const SKIPPED = new Set(['head', 'script', 'style', 'template', 'noscript', 'svg', 'math', 'iframe', 'object', 'nav', 'select', 'button', 'textarea']); // prettier-ignore
const INLINE = new Set(['a', 'abbr', 'b', 'bdi', 'bdo', 'cite', 'code', 'data', 'del', 'dfn', 'em', 'font', 'i', 'ins', 'kbd', 'label', 'mark', 'q', 's', 'samp', 'small', 'span', 'strong', 'sub', 'sup', 'time', 'tt', 'u', 'var', 'wbr', 'img']); // prettier-ignore
/** Elements that are one block, whatever they contain. */
const WHOLE: Readonly<Record<string, DocumentBlock['kind']>> = {
  ul: 'list',
  ol: 'list',
  dl: 'list',
  table: 'table',
  pre: 'code',
};
const HEADING = /^h([1-6])$/;

/** One step of the walk: a node to enter, or an element to leave. */
interface Step {
  readonly node: Node;
  readonly depth: number;
  readonly isEnd: boolean;
}

const isElement = (node: Node): node is Element => 'tagName' in node;
const isHidden = ({ attrs }: Element): boolean =>
  attrs.some(({ name, value }) => name === 'hidden' || (name === 'aria-hidden' && value === 'true'));

const SPACE = 32;
const TAB = 9;

/** The text of a page, block by block. It grows in a buffer: trimming a long string copies it, for every line of a page. */
class PageText {
  readonly blocks: DocumentBlock[] = [];
  /** Offsets of the text and the lines of the file they come from. */
  readonly offsets: number[] = [];
  readonly lines: number[] = [];
  readonly #path: { level: number; title: string }[] = [];
  #units = new Uint16Array(1 << 12);
  #length = 0;
  #start = 0;
  #kind: DocumentBlock['kind'] = 'paragraph';
  #isPreformatted = false;

  get text(): string {
    return this.#slice(0, this.#length);
  }

  /** Ends the current block and begins one of this kind. */
  begin(kind: DocumentBlock['kind']): void {
    let [start, end] = [this.#start, this.#length];
    while (end > start && isSpace(this.#units[end - 1]!)) end--;
    while (start < end && isSpace(this.#units[start]!)) start++;
    if (end > start) {
      const headings = this.#path.map(({ title }) => title);
      this.blocks.push({ kind: this.#kind, start, end, headings });
      this.#length = end;
      this.#append('\n\n');
    } else this.#length = this.#start;
    this.#start = this.#length;
    this.#kind = kind;
    this.#isPreformatted = kind === 'code';
  }

  /** Ends a heading, which opens a section. */
  endHeading(level: number): void {
    const title = clipTitle(this.#slice(this.#start, this.#length).replace(/\s+/g, ' '));
    while (this.#path.length > 0 && this.#path.at(-1)!.level >= level) this.#path.pop();
    if (title !== '') this.#path.push({ level, title });
    this.begin('paragraph');
  }

  breakLine(mark = ''): void {
    let end = this.#length;
    while (end > this.#start && (this.#units[end - 1] === SPACE || this.#units[end - 1] === TAB)) end--;
    this.#length = end;
    if (end > this.#start) this.#append('\n');
    this.#append(mark);
  }

  add(words: string, line: number | null): void {
    for (const [i, piece] of words.split('\n').entries()) {
      if (i > 0) this.#space(this.#isPreformatted ? '\n' : ' ');
      if (line !== null && piece.trim() !== '') {
        this.offsets.push(this.#length);
        this.lines.push(line + i);
      }
      if (this.#isPreformatted) this.#append(piece);
      else {
        if (/^\s/.test(piece)) this.#space(' ');
        this.#append(piece.trim().replace(/\s+/g, ' '));
        if (/\s$/.test(piece)) this.#space(' ');
      }
    }
  }

  #space(space: string): void {
    const isAfterText = this.#length > this.#start && !isSpace(this.#units[this.#length - 1]!);
    if (this.#isPreformatted || isAfterText) this.#append(space);
  }

  #append(text: string): void {
    if (this.#length + text.length > this.#units.length) {
      const larger = new Uint16Array(Math.max(2 * this.#units.length, this.#length + text.length));
      larger.set(this.#units.subarray(0, this.#length));
      this.#units = larger;
    }
    for (let i = 0; i < text.length; i++) this.#units[this.#length++] = text.charCodeAt(i);
  }

  #slice(start: number, end: number): string {
    return decoder.decode(this.#units.subarray(start, end));
  }
}

const decoder = new TextDecoder('utf-16le', { ignoreBOM: true });
const isSpace = (unit: number): boolean =>
  unit < 128 ? unit === SPACE || (unit >= TAB && unit <= 13) : /\s/.test(String.fromCharCode(unit));

/** Headings, paragraphs, lists, tables and preformatted text of a page, with the lines of the file they come from. */
export function parseHtml(html: string): ParsedDocument {
  const page = new PageText();
  const root = parse(html, { sourceCodeLocationInfo: true });
  // Not recursive: a page decides how deep it nests.
  const steps: Step[] = root.childNodes.toReversed().map((node) => ({ node, depth: 1, isEnd: false }));
  let numWhole = 0;
  for (let step = steps.pop(); step !== undefined; step = steps.pop()) {
    const { node, depth, isEnd } = step;
    if (depth > DOCUMENT_LIMITS.depth) {
      throw new RuvLLMError('limit_exceeded', `the page nests deeper than ${DOCUMENT_LIMITS.depth} elements`, { data: { limit: DOCUMENT_LIMITS.depth } }); // prettier-ignore
    }
    if (!isElement(node)) {
      if ('value' in node) page.add(node.value, node.sourceCodeLocation?.startLine ?? null);
      continue;
    }
    const { tagName } = node;
    if (SKIPPED.has(tagName) || isHidden(node)) continue;
    const heading = HEADING.exec(tagName);
    const whole = Object.hasOwn(WHOLE, tagName) ? WHOLE[tagName]! : null;
    if (isEnd) {
      if (heading !== null && numWhole === 0) page.endHeading(Number(heading[1]));
      else if (whole !== null) {
        numWhole--;
        if (numWhole === 0) page.begin('paragraph');
      } else if (tagName === 'td' || tagName === 'th') page.add(' | ', null);
      else if (!INLINE.has(tagName) && numWhole === 0) page.begin('paragraph');
      continue;
    }
    if (tagName === 'br') {
      page.breakLine();
      continue;
    }
    if (numWhole > 0) {
      if (tagName === 'li') page.breakLine('- ');
      else if (tagName === 'tr' || tagName === 'dt' || tagName === 'dd') page.breakLine();
    } else if (whole !== null) page.begin(whole);
    else if (!INLINE.has(tagName)) page.begin(heading === null ? 'paragraph' : 'heading');
    if (whole !== null) numWhole++;
    steps.push({ node, depth, isEnd: true });
    for (const child of node.childNodes.toReversed()) steps.push({ node: child, depth: depth + 1, isEnd: false });
  }
  page.begin('paragraph');
  const { text, blocks, offsets, lines } = page;
  return { text, blocks, pageStarts: null, lineAt: (offset) => lines[lastAtMost(offsets, offset)] ?? 1 };
}
