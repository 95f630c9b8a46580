/** Limits of one document, checked before any work that grows with it. */
export const DOCUMENT_LIMITS = {
  /** Of the file as it comes. */
  sizeBytes: 32 * 2 ** 20,
  /** Of the extracted text: a compressed PDF can have far more text than bytes. */
  textChars: 8 * 2 ** 20,
  pages: 5000,
  chunks: 10_000,
  /** Levels of nested HTML elements. */
  depth: 512,
  /** A name is the source of each chunk, which has this limit. */
  nameChars: 256,
} as const;

/** Each chunk repeats the headings above it. */
export const MAX_TITLE_CHARS = 256;

export const clipTitle = (title: string): string => title.trim().slice(0, MAX_TITLE_CHARS).toWellFormed();

/** Tokens of a chunk. Small sentence encoders read 256 tokens; one word in a few has more tokens than estimated. */
export const CHUNK_TOKENS = { target: 180, max: 220, overlap: 28 } as const;
