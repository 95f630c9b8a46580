import type { LexicalSnapshot } from './lexical-index.ts';

/** Of the bytes and of `termsOf`: an index with other terms would not be found. */
const VERSION = 1;
/** Version, seq, and the numbers of rows, postings and bytes of terms. */
const HEADER_NUMBERS = 5;
const SEPARATOR = '\n';

export interface SavedLexicalIndex {
  readonly snapshot: LexicalSnapshot;
  /** The index has all writes up to this one. */
  readonly seq: number;
}

/** The header and the rows as doubles, then lengths, counts and postings as 32-bit integers, then the terms as UTF-8. */
export function encodeSnapshot({ snapshot, seq }: SavedLexicalIndex): Uint8Array {
  const { rows, lengths, counts, postings } = snapshot;
  const terms = new TextEncoder().encode(snapshot.terms.join(SEPARATOR));
  const header = Float64Array.of(VERSION, seq, rows.length, postings.length, terms.length);
  const parts = [header, rows, lengths, counts, postings, terms];
  const bytes = new Uint8Array(parts.reduce((sum, { byteLength }) => sum + byteLength, 0));
  let at = 0;
  for (const { buffer, byteOffset, byteLength } of parts) {
    bytes.set(new Uint8Array(buffer, byteOffset, byteLength), at);
    at += byteLength;
  }
  return bytes;
}

/** Null: of another version. */
export function decodeSnapshot(bytes: Uint8Array): SavedLexicalIndex | null {
  const { buffer } = bytes.byteOffset === 0 ? bytes : bytes.slice(); // doubles must be aligned
  if (bytes.length < HEADER_NUMBERS * 8) return null;
  const [version, seq = 0, numRows = 0, numPostings = 0, termBytes = 0] = new Float64Array(buffer, 0, HEADER_NUMBERS);
  if (version !== VERSION || bytes.length !== 8 * (HEADER_NUMBERS + numRows) + 4 * (2 * numRows + numPostings) + termBytes) return null; // prettier-ignore
  let at = HEADER_NUMBERS * 8;
  const take = <T>(length: number, width: number, read: (from: number) => T): T => {
    const from = at;
    at += length * width;
    return read(from);
  };
  const rows = take(numRows, 8, (from) => new Float64Array(buffer, from, numRows));
  const lengths = take(numRows, 4, (from) => new Uint32Array(buffer, from, numRows));
  const counts = take(numRows, 4, (from) => new Uint32Array(buffer, from, numRows));
  const postings = take(numPostings, 4, (from) => new Uint32Array(buffer, from, numPostings));
  const text = new TextDecoder().decode(new Uint8Array(buffer, at, termBytes));
  return { snapshot: { terms: text === '' ? [] : text.split(SEPARATOR), rows, lengths, counts, postings }, seq };
}
