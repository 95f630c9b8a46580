import { RuvLLMError } from '../../core/errors.ts';
import { parseMediaType } from '../../core/media-type.ts';
import { CODE_EXTENSIONS, parseCode } from './code.ts';
import { DOCUMENT_LIMITS } from './limits.ts';
import { parseMarkdown } from './markdown.ts';
import { parsePlainText } from './plain-text.ts';
import type { ParsedDocument } from './types.ts';

/** A file to read: its bytes, or text that is already decoded. */
export interface DocumentFile {
  readonly name: string;
  readonly content: Uint8Array | string;
  /** Such as `text/markdown`. Default: by the extension of the name and the first bytes. */
  readonly contentType?: string | undefined;
}

interface Format {
  readonly contentType: string;
  /** Other content types of it. */
  readonly aliases: readonly string[];
  readonly extensions: readonly string[];
  parse(text: string): ParsedDocument | Promise<ParsedDocument>;
}

const TEXT_FORMATS: readonly Format[] = [
  { contentType: 'text/plain', aliases: [], extensions: ['txt', 'text', 'log', 'csv', 'tsv', 'rst', 'org', 'adoc', 'tex'], parse: parsePlainText }, // prettier-ignore
  { contentType: 'text/markdown', aliases: ['text/x-markdown'], extensions: ['md', 'markdown', 'mdx'], parse: parseMarkdown }, // prettier-ignore
  {
    contentType: 'text/html',
    aliases: ['application/xhtml+xml'],
    extensions: ['html', 'htm', 'xhtml'],
    parse: async (text) => (await import('./html.ts')).parseHtml(text),
  },
  {
    contentType: 'text/x-code',
    aliases: ['text/javascript', 'application/javascript', 'application/typescript', 'text/x-python', 'text/css', 'application/json', 'application/x-sh', 'text/x-c', 'text/x-java', 'text/x-rust', 'text/x-go'], // prettier-ignore
    extensions: CODE_EXTENSIONS,
    parse: parseCode,
  },
];
const PDF_TYPE = 'application/pdf';
/** Sent by clients that do not know the type. */
const UNKNOWN_TYPES = ['', 'application/octet-stream', 'application/x-www-form-urlencoded'];

/** Extensions of files that a folder adds; others are skipped. */
export const DOCUMENT_EXTENSIONS: readonly string[] = [...TEXT_FORMATS.flatMap(({ extensions }) => extensions), 'pdf'];

export interface ReadDocument extends ParsedDocument {
  readonly contentType: string;
}

const extensionOf = (name: string): string => /\.([^./\\]+)$/.exec(name)?.[1]?.toLowerCase() ?? '';
const quote = (name: string): string => JSON.stringify(name.slice(0, 200));
const isPdf = (bytes: Uint8Array): boolean => new TextDecoder('latin1').decode(bytes.subarray(0, 1024)).includes('%PDF-'); // prettier-ignore

/** Decodes strictly: replacement characters would hide that a file is binary or has another encoding. */
function decode(bytes: Uint8Array, name: string): string {
  const zero = bytes.indexOf(0);
  if (zero >= 0) {
    throw new RuvLLMError('invalid_text', `${quote(name)} is not text: byte ${zero} of ${bytes.length} is 0`, {
      data: { offset: zero, sizeBytes: bytes.length },
    });
  }
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch (error) {
    throw new RuvLLMError(
      'invalid_text',
      `${quote(name)} is not valid UTF-8 (${bytes.length} bytes); convert it first`,
      {
        cause: error,
        data: { sizeBytes: bytes.length },
      },
    );
  }
}

function checkSize(size: number, limit: number, what: string, unit: string): void {
  if (size <= limit) return;
  throw new RuvLLMError('limit_exceeded', `${what} has ${size} ${unit}; the limit is ${limit}`, { data: { size, limit } }); // prettier-ignore
}

/** The text and structure of a file; refuses files that are too large, empty, damaged or not text. */
export async function readDocument({ name, content, contentType }: DocumentFile): Promise<ReadDocument> {
  const size = content.length;
  checkSize(size, DOCUMENT_LIMITS.sizeBytes, quote(name), typeof content === 'string' ? 'characters' : 'bytes');
  const given = parseMediaType(contentType)?.type ?? '';
  const isTyped = !UNKNOWN_TYPES.includes(given);
  const bytes = typeof content === 'string' ? null : content;
  let read: ReadDocument;
  if (
    bytes !== null &&
    (given === PDF_TYPE || (!isTyped && isPdf(bytes)) || (!isTyped && extensionOf(name) === 'pdf'))
  ) {
    if (!isPdf(bytes)) throw new RuvLLMError('invalid_text', `${quote(name)} is not a PDF: it has no %PDF- header (${size} bytes)`); // prettier-ignore
    read = { ...(await (await import('./pdf.ts')).parsePdf(bytes)), contentType: PDF_TYPE };
  } else {
    const format = TEXT_FORMATS.find((one) =>
      isTyped ? one.contentType === given || one.aliases.includes(given) : one.extensions.includes(extensionOf(name)),
    );
    if (format === undefined && isTyped && !given.startsWith('text/')) {
      throw new RuvLLMError('unsupported', `${quote(name)} has the type ${given}; supported are text, Markdown, HTML, PDF and source code`); // prettier-ignore
    }
    const { contentType: type, parse } = format ?? TEXT_FORMATS[0]!;
    const text = (bytes === null ? (content as string).toWellFormed() : decode(bytes, name)).replace(/^\uFEFF/, '');
    read = { ...(await parse(text)), contentType: type };
  }
  checkSize(read.text.length, DOCUMENT_LIMITS.textChars, `the text of ${quote(name)}`, 'characters');
  if (read.blocks.length === 0) {
    const reason = read.contentType === PDF_TYPE ? '; a scanned PDF has pictures only' : '';
    throw new RuvLLMError('invalid_text', `${quote(name)} has no text (${size} bytes)${reason}`, { data: { sizeBytes: size } }); // prettier-ignore
  }
  return read;
}
