import { refusal } from '../errors.ts';
import type { Field } from './fields.ts';

/** A query parameter, or `fallback` if it is absent. */
export function readOption<T>(query: URLSearchParams, name: string, field: Field<T>, fallback: T): T {
  const text = query.get(name);
  return text === null ? fallback : field.read(text, name);
}

/** The page of a list after the item with the id `after`, or from its start. */
export function pageAfter<T extends { readonly id: string }>(
  items: readonly T[],
  { after, limit, param }: { after: string | null; limit: number; param: string },
): { readonly data: readonly T[]; readonly hasMore: boolean } {
  const start = after === null ? 0 : items.findIndex(({ id }) => id === after) + 1;
  if (after !== null && start === 0) {
    throw refusal(400, 'invalid_value', `'${param}': item ${JSON.stringify(after.slice(0, 200))} not found`, {
      param,
    });
  }
  return { data: items.slice(start, start + limit), hasMore: start + limit < items.length };
}
