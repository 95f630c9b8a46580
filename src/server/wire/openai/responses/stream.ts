import type { Failure } from '../../../errors.ts';
import type { LastChunk } from '../../../../runtime/requests/answer-chunks.ts';
import type { SseMessage } from '../../../sse.ts';
import { isMcpPart, mcpEvents } from './mcp-items.ts';
import {
  itemId,
  type ResponseHead,
  type ResponsePart,
  type ResponsePartEvent,
  writeItem,
  writeLogprobs,
  writeStarted,
  writeTextPart,
  writeThought,
} from './response-object.ts';

export interface ResponseStream {
  readonly messages: AsyncGenerator<SseMessage, void, undefined>;
  /** The last event of a failed response. */
  writeFailed(failure: Failure): object;
}

type Numbered = { readonly type: string; readonly sequence_number: number };

/**
 * The events of a streamed response, numbered from 0. `end` writes and stores the finished response before the last event,
 * so that clients can continue it at once.
 */
export function createResponseStream(
  head: ResponseHead,
  events: AsyncIterable<ResponsePartEvent>,
  end: (parts: readonly ResponsePart[], finished: LastChunk) => Promise<{ readonly status: string }>,
): ResponseStream {
  let sequence = 0;
  const number = (type: string, fields: object): Numbered => ({ type, sequence_number: sequence++, ...fields });
  const send = (type: string, fields: object): SseMessage => {
    const event = number(type, fields);
    return { event: type, data: JSON.stringify(event) };
  };

  async function* write(): AsyncGenerator<SseMessage, void, undefined> {
    yield send('response.created', { response: writeStarted(head) });
    yield send('response.in_progress', { response: writeStarted(head) });
    for await (const event of events) {
      if (event.type !== 'finished') {
        yield* writePart(event);
        continue;
      }
      const response = await end(event.parts, event.finished);
      yield send(`response.${response.status}`, { response });
    }
  }

  function* writePart(event: Exclude<ResponsePartEvent, { type: 'finished' }>): Generator<SseMessage> {
    const { index, part } = event;
    const item = { item_id: itemId(head, part, index), output_index: index };
    const text = { ...item, content_index: 0 };
    if (event.type === 'open') {
      yield send('response.output_item.added', {
        output_index: index,
        item: writeItem(head, part, index, 'in_progress'),
      });
      if (part.type === 'tool_call' || isMcpPart(part)) return;
      const empty = part.type === 'text' ? writeTextPart(head, '', null) : writeThought('');
      yield send('response.content_part.added', { ...text, part: empty });
    } else if (event.type === 'delta') {
      const { text: delta, logprobs } = event;
      if (part.type === 'tool_call') yield send('response.function_call_arguments.delta', { ...item, delta });
      else if (isMcpPart(part)) yield send('response.mcp_call_arguments.delta', { ...item, delta });
      else if (part.type === 'reasoning') yield send('response.reasoning_text.delta', { ...text, delta });
      else yield send('response.output_text.delta', { ...text, delta, logprobs: writeLogprobs(head, logprobs) });
    } else if (event.type === 'arguments') {
      yield send('response.mcp_call_arguments.done', { ...item, arguments: event.part.arguments });
      yield send('response.mcp_call.in_progress', item);
    } else {
      yield* writeClosed(event, item);
    }
  }

  function* writeClosed(
    { index, part, isCut }: Extract<ResponsePartEvent, { type: 'close' }>,
    item: object,
  ): Generator<SseMessage> {
    const text = { ...item, content_index: 0 };
    if (isMcpPart(part)) {
      for (const [type, fields] of mcpEvents(head, part, index)) yield send(type, fields);
    } else if (part.type === 'text') {
      const whole = writeTextPart(head, part.text, part.logprobs);
      yield send('response.output_text.done', { ...text, text: part.text, logprobs: whole.logprobs });
      yield send('response.content_part.done', { ...text, part: whole });
    } else if (part.type === 'reasoning') {
      yield send('response.reasoning_text.done', { ...text, text: part.text });
      yield send('response.content_part.done', { ...text, part: writeThought(part.text) });
    } else {
      yield send('response.function_call_arguments.done', { ...item, name: part.name, arguments: part.arguments });
    }
    const status = isCut ? 'incomplete' : 'completed';
    yield send('response.output_item.done', { output_index: index, item: writeItem(head, part, index, status) });
  }

  return {
    messages: write(),
    writeFailed: ({ status, message }) => {
      // The API has only a few codes; the message has the details.
      const code = status === 429 ? 'rate_limit_exceeded' : status < 500 ? 'invalid_prompt' : 'server_error';
      const response = { ...writeStarted(head), status: 'failed', error: { code, message } };
      return number('response.failed', { response });
    },
  };
}
