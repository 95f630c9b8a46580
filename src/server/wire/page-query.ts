import { refusal } from '../errors.ts';
import { invalid } from './fields.ts';

/** A number in the query of a URL; `fallback` when it is not there. */
export function readQueryInteger(
  query: URLSearchParams,
  name: string,
  { minimum, maximum, fallback }: { minimum: number; maximum: number; fallback: number },
): number {
  const text = query.get(name);
  if (text === null) return fallback;
  const value = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN;
  if (value >= minimum && value <= maximum) return value;
  throw invalid(name, `an integer from ${minimum} to ${maximum}`, text);
}

/** One of a few words in the query of a URL. */
export function readQueryChoice<const T extends string>(
  query: URLSearchParams,
  name: string,
  choices: readonly T[],
): T {
  const text = query.get(name);
  if (text === null) return choices[0]!;
  if ((choices as readonly string[]).includes(text)) return text as T;
  throw invalid(name, `one of ${choices.join(', ')}`, text);
}

/** The page of a list behind the item with the id `after`, or from its start. */
export function pageAfter<T extends { readonly id: string }>(
  items: readonly T[],
  { after, limit, param }: { after: string | null; limit: number; param: string },
): { readonly data: readonly T[]; readonly hasMore: boolean } {
  const start = after === null ? 0 : items.findIndex(({ id }) => id === after) + 1;
  if (after !== null && start === 0) {
    throw refusal(400, 'invalid_value', `'${param}': there is no item ${JSON.stringify(after.slice(0, 200))}`, {
      param,
    });
  }
  return { data: items.slice(start, start + limit), hasMore: start + limit < items.length };
}
