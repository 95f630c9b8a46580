import type { StoredResponse } from '../../../response-store.ts';
import { choiceField } from '../../fields.ts';
import { pageAfter, readOption } from '../../page-query.ts';
import { queryInteger } from '../../query-fields.ts';
import type { ChatMessage } from '../../../../runtime/lower-layers.ts';

type Item = { readonly id: string; readonly type: string };

/** The items of a turn. */
function toItems({ role, content, toolCalls = [], toolCallId }: ChatMessage, id: string): Item[] {
  const status = 'completed';
  if (toolCallId !== undefined) {
    return [{ id: `fco_${id}`, type: 'function_call_output', status, call_id: toolCallId, output: content } as Item];
  }
  const calls = toolCalls.map(({ id: callId, name, arguments: args }, index) => ({
    id: `fc_${id}_${index}`,
    type: 'function_call',
    status,
    call_id: callId,
    name,
    arguments: args,
  }));
  if (content === '' && calls.length > 0) return calls;
  const part =
    role === 'assistant'
      ? { type: 'output_text', text: content, annotations: [], logprobs: [] }
      : { type: 'input_text', text: content };
  return [{ id: `msg_${id}`, type: 'message', status, role, content: [part] } as Item, ...calls];
}

/** The input items of a stored response: the conversation before its answer, by default the last item first. */
export function writeInputItems({ id, messages }: StoredResponse, query: URLSearchParams): object {
  const limit = readOption(query, 'limit', queryInteger(1, 100), 20);
  const order = readOption(query, 'order', choiceField(['desc', 'asc']), 'desc');
  const name = id.slice('resp_'.length);
  const items = messages.slice(0, -1).flatMap((message, index) => toItems(message, `${name}_in_${index}`));
  if (order === 'desc') items.reverse();
  const { data, hasMore } = pageAfter(items, { after: query.get('after'), limit, param: 'after' });
  // OpenAI's schema does not allow null here.
  const [first, last] = [data[0]?.id ?? '', data.at(-1)?.id ?? ''];
  return { object: 'list', data, has_more: hasMore, first_id: first, last_id: last };
}
