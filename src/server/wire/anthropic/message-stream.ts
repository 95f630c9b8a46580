import type { AnswerChunk } from '../../../runtime/requests/answer-chunks.ts';
import { type OutputPart, toPartEvents } from '../../output-parts.ts';
import type { SseMessage } from '../../sse.ts';
import { type MessageHead, SIGNATURE, startToolUse, toStop, visibleEvents, writeEnvelope } from './message-response.ts';
import { toDeltaUsage } from './usage.ts';

const write = (event: { readonly type: string }): SseMessage => ({ event: event.type, data: JSON.stringify(event) });

/** Keep-alive. */
export const PING = write({ type: 'ping' });

const DELTAS: Readonly<Record<OutputPart['type'], (text: string) => object>> = {
  text: (text) => ({ type: 'text_delta', text }),
  reasoning: (thinking) => ({ type: 'thinking_delta', thinking }),
  tool_call: (json) => ({ type: 'input_json_delta', partial_json: json }),
};

function startBlock(part: OutputPart): object {
  if (part.type === 'tool_call') return startToolUse(part);
  if (part.type === 'reasoning') return { type: 'thinking', thinking: '', signature: '' };
  return { type: 'text', text: '', citations: null };
}

/** The events of a streamed message. The first contains the prompt tokens, the last the cached ones. */
export async function* writeMessageStream(
  head: MessageHead,
  events: AsyncIterable<AnswerChunk>,
  promptTokens: Promise<number>,
): AsyncGenerator<SseMessage, void, undefined> {
  const send = (type: string, fields: object): SseMessage => write({ type, ...fields });
  yield send('message_start', { message: writeEnvelope(head, await promptTokens) });
  for await (const event of toPartEvents(visibleEvents(head, events), { hasText: false })) {
    if (event.type === 'open') {
      const { index, part } = event;
      yield send('content_block_start', { index, content_block: startBlock(part) });
      if (index === 0) yield PING;
    } else if (event.type === 'delta') {
      const { index, part, text } = event;
      yield send('content_block_delta', { index, delta: DELTAS[part.type](text) });
    } else if (event.type === 'close') {
      const { index, part } = event;
      if (part.type === 'reasoning') {
        yield send('content_block_delta', { index, delta: { type: 'signature_delta', signature: SIGNATURE } });
      }
      yield send('content_block_stop', { index });
    } else {
      const { finished } = event;
      const delta = { ...toStop(finished), stop_details: null, container: null };
      yield send('message_delta', { delta, usage: toDeltaUsage(finished.usage, head.hasCacheControl) });
    }
  }
  yield send('message_stop', {});
}
