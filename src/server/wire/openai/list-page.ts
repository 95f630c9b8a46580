import { choiceField } from '../fields.ts';
import { pageAfter, readOption } from '../page-query.ts';
import { queryInteger } from '../query-fields.ts';

/** A page of items given in ascending order, as the query's `after`, `limit` and `order` say. */
export function readPage<T extends { readonly id: string }>(
  items: readonly T[],
  query: URLSearchParams,
  defaultOrder: 'asc' | 'desc',
): { readonly data: readonly T[]; readonly hasMore: boolean } {
  const limit = readOption(query, 'limit', queryInteger(1, 100), 20);
  const order = readOption(query, 'order', choiceField(['desc', 'asc']), defaultOrder);
  const ordered = order === 'desc' ? items.toReversed() : items;
  return pageAfter(ordered, { after: query.get('after'), limit, param: 'after' });
}

export function writeList(data: readonly { readonly id: string }[], hasMore: boolean): object {
  // OpenAI's schema does not allow null here.
  const [first, last] = [data[0]?.id ?? '', data.at(-1)?.id ?? ''];
  return { object: 'list', data, has_more: hasMore, first_id: first, last_id: last };
}

/** The query parameters of a list, for the documentation. */
export const PAGE_QUERY = {
  after: { schema: { type: 'string' } },
  limit: { schema: { type: 'integer', minimum: 1, maximum: 100, default: 20 } },
  order: { schema: { type: 'string', enum: ['asc', 'desc'] } },
} as const;
