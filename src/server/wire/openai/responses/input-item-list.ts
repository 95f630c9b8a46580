import type { StoredObject } from '../../../stored/types.ts';
import { readPage, writeList } from '../list-page.ts';
import { writeItems } from './write-items.ts';

/** The input items of a stored response: the conversation before its answer, by default the last item first. */
export function writeInputItems(
  { id, content }: Pick<StoredObject<'response'>, 'id' | 'content'>,
  query: URLSearchParams,
): object {
  const name = id.slice('resp_'.length);
  const items = content.messages
    .slice(0, -(content.numAnswerTurns ?? 1))
    .flatMap((message, index) => writeItems(message, `${name}_in_${index}`));
  const { data, hasMore } = readPage(items, query, 'desc');
  return writeList(data, hasMore);
}
