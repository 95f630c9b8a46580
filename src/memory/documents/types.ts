/** A part of a document that is not divided unless it is too large for a chunk. */
export interface DocumentBlock {
  readonly kind: 'heading' | 'paragraph' | 'list' | 'table' | 'code';
  /** Range in the text of the document. */
  readonly start: number;
  readonly end: number;
  /** Headings above it, the outermost first. A heading has its own text as the last one. */
  readonly headings: readonly string[];
}

/** The text of a document and its structure. */
export interface ParsedDocument {
  readonly text: string;
  /** In order, without overlap. */
  readonly blocks: readonly DocumentBlock[];
  /** Where pages begin in the text; null: a format without pages. */
  readonly pageStarts: readonly number[] | null;
  /** The line of the file at an offset of the text, from 1. Default: the line of the text. */
  readonly lineAt?: (offset: number) => number;
}

/** A part of a document that is found and cited on its own. */
export interface DocumentChunk {
  readonly text: string;
  /** Range in the text of the document; it may begin before the end of the previous chunk. */
  readonly start: number;
  readonly end: number;
  readonly headings: readonly string[];
  /** From 1; null: the format has pages. */
  readonly startLine: number | null;
  readonly endLine: number | null;
  /** From 1; null: the format has no pages. */
  readonly startPage: number | null;
  readonly endPage: number | null;
}
