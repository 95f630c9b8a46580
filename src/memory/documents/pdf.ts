import { messageOf, RuvLLMError } from '../../core/errors.ts';
import { DOCUMENT_LIMITS } from './limits.ts';
import type { DocumentBlock, ParsedDocument } from './types.ts';

interface PdfLine {
  readonly text: string;
  /** Of its largest letters. */
  readonly height: number;
}

export interface TextItem {
  readonly str?: string;
  readonly height: number;
  readonly hasEOL: boolean;
  /** The last two are the position on the page. */
  readonly transform: readonly number[];
}

/** A line with larger letters than most is a heading, unless it is as long as a paragraph. */
const HEADING_RATIO = 1.15;
const MAX_HEADING_CHARS = 200;

/** The lines of a page: items at another height begin a new line. */
export function linesOfPage(items: readonly TextItem[]): PdfLine[] {
  const lines: PdfLine[] = [];
  let text = '';
  let height = 0;
  let y: number | null = null;
  const close = (): void => {
    if (text.trim() !== '') lines.push({ text: text.trim().toWellFormed(), height });
    text = '';
    height = 0;
  };
  for (const { str = '', height: size, hasEOL, transform } of items) {
    const at = transform[5] ?? 0;
    if (y !== null && str !== '' && Math.abs(at - y) > Math.max(size, 1) / 2) close();
    if (str !== '') y = at;
    text += str;
    height = Math.max(height, size);
    if (hasEOL) close();
  }
  close();
  return lines;
}

function damaged(sizeBytes: number, error: unknown): RuvLLMError {
  const reason = messageOf(error);
  const isLocked = error instanceof Error && error.name === 'PasswordException';
  const message = isLocked ? `the PDF needs a password (${sizeBytes} bytes)` : `the PDF is damaged (${sizeBytes} bytes): ${reason}`; // prettier-ignore
  return new RuvLLMError('invalid_text', message, { cause: error, data: { sizeBytes } });
}

async function readPages(bytes: Uint8Array): Promise<PdfLine[][]> {
  // A megabyte of code that most memories never need.
  const { getDocumentProxy } = await import('unpdf');
  const pdf = await getDocumentProxy(bytes.slice(), { isEvalSupported: false, verbosity: 0, stopAtErrors: true });
  try {
    const { numPages } = pdf;
    if (numPages > DOCUMENT_LIMITS.pages) {
      throw new RuvLLMError('limit_exceeded', `the PDF has ${numPages} pages; the limit is ${DOCUMENT_LIMITS.pages}`, { data: { numPages, limit: DOCUMENT_LIMITS.pages } }); // prettier-ignore
    }
    const pages: PdfLine[][] = [];
    let numChars = 0;
    for (let number = 1; number <= numPages; number++) {
      const page = await pdf.getPage(number);
      const { items } = await page.getTextContent();
      const lines = linesOfPage(items as unknown as readonly TextItem[]);
      numChars += lines.reduce((sum, { text }) => sum + text.length, 0);
      if (numChars > DOCUMENT_LIMITS.textChars) {
        throw new RuvLLMError('limit_exceeded', `the PDF has more than ${DOCUMENT_LIMITS.textChars} characters, on page ${number} of ${numPages}`, { data: { limit: DOCUMENT_LIMITS.textChars } }); // prettier-ignore
      }
      pages.push(lines);
      page.cleanup();
    }
    return pages;
  } finally {
    await pdf.destroy();
  }
}

/** The height of most of the text. */
function usualHeight(pages: readonly (readonly PdfLine[])[]): number {
  const numChars = new Map<number, number>();
  for (const { text, height } of pages.flat()) numChars.set(height, (numChars.get(height) ?? 0) + text.length);
  return [...numChars].sort((a, b) => b[1] - a[1])[0]?.[0] ?? 0;
}

/** The text of a PDF, page by page; lines in larger letters are headings. */
export async function parsePdf(bytes: Uint8Array): Promise<ParsedDocument> {
  const pages = await readPages(bytes).catch((error: unknown) => {
    throw error instanceof RuvLLMError ? error : damaged(bytes.length, error);
  });
  const usual = usualHeight(pages);
  const isHeading = ({ text, height }: PdfLine): boolean => height > usual * HEADING_RATIO && text.length <= MAX_HEADING_CHARS; // prettier-ignore
  // The larger the letters, the higher the level.
  const sizes = [...new Set(pages.flat().filter(isHeading).map(({ height }) => height))].sort((a, b) => b - a); // prettier-ignore
  const path: { level: number; title: string }[] = [];
  const blocks: DocumentBlock[] = [];
  const pageStarts: number[] = [];
  const texts: string[] = [];
  let start = 0;
  let block = '';
  const close = (kind: DocumentBlock['kind']): void => {
    const text = block.trimEnd();
    block = '';
    if (text === '') return;
    blocks.push({ kind, start, end: start + text.length, headings: path.map(({ title }) => title) });
    texts.push(text, '\n\n');
    start += text.length + 2;
  };
  for (const lines of pages) {
    close('paragraph');
    pageStarts.push(start);
    for (const line of lines) {
      if (!isHeading(line)) {
        block += `${line.text}\n`;
        continue;
      }
      close('paragraph');
      const level = sizes.indexOf(line.height);
      while (path.length > 0 && path.at(-1)!.level >= level) path.pop();
      path.push({ level, title: line.text });
      block += line.text;
      close('heading');
    }
  }
  close('paragraph');
  return { text: texts.join(''), blocks, pageStarts };
}
