import type { TokenTable } from './token-table.ts';
import { createTokenTable } from './token-table.ts';
import { openVocabulary, type VocabularyData } from './vocabulary-data.ts';

/** A `TokenTable` as plain data: numbers, flat arrays, and objects of these. */
export interface TokenTableData extends Omit<TokenTable, 'vocabulary'> {
  readonly vocabulary: VocabularyData;
}

/** Builds the table in shared memory, which threads pass without a copy. */
export function buildTableData(vocabulary: VocabularyData): TokenTableData {
  const table = createTokenTable(openVocabulary(vocabulary));
  return shareArrays({ ...table, vocabulary });
}

/** The table of `buildTableData`, from any thread. */
export function openTokenTable(data: TokenTableData): TokenTable {
  return { ...data, vocabulary: openVocabulary(data.vocabulary) };
}

type FlatArray = Uint8Array | Uint16Array | Uint32Array | Int32Array;

const isFlatArray = (value: unknown): value is FlatArray => ArrayBuffer.isView(value) && !(value instanceof DataView);

function shareArray<T extends FlatArray>(array: T): T {
  const Type = array.constructor as new (buffer: SharedArrayBuffer) => T;
  const copy = new Type(new SharedArrayBuffer(array.byteLength));
  copy.set(array);
  return copy;
}

function shareArrays<T>(value: T): T {
  if (isFlatArray(value)) return shareArray(value);
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, shareArrays(inner as unknown)])) as T;
}
