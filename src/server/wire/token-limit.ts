import { invalid, type Field } from './fields.ts';
import { oneSpelling } from './spellings.ts';

/** Longest answer of a request. */
export interface TokenLimit {
  readonly name: string;
  /** Null: as many tokens as fit. */
  readonly maxTokens: number | null;
}

/** A number of tokens; -1 is as many as fit. More than fit is no error: the answer ends with the context. */
export const maxTokensField: Field<number> = {
  schema: { type: 'integer', minimum: -1, description: '-1, or more than fits: as many tokens as fit' },
  read(value, path) {
    if (Number.isInteger(value) && ((value as number) > 0 || value === -1)) return value as number;
    throw invalid(path, 'a positive integer, or -1 for as many tokens as fit', value);
  },
};

const INT32_MAX = 2 ** 31 - 1;

/** The limit under whichever of its names; null if the request has none. */
export function tokenLimitOf<const K extends string>(
  fields: Readonly<Record<K, number | null>>,
  ...names: readonly K[]
): TokenLimit | null {
  const limit = oneSpelling(fields, ...names);
  if (limit === null) return null;
  return { name: limit.name, maxTokens: limit.value === -1 ? null : Math.min(limit.value, INT32_MAX) };
}
