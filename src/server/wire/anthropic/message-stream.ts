import type { JobEvent } from '../../generate-job.ts';
import { toPartEvents } from '../../output-parts.ts';
import type { SseMessage } from '../../sse.ts';
import { type MessageHead, startToolUse, toStop, writeEnvelope } from './message-response.ts';
import { toDeltaUsage } from './usage.ts';

const write = (event: { readonly type: string }): SseMessage => ({ event: event.type, data: JSON.stringify(event) });

/** Says that the server is still there. */
export const PING = write({ type: 'ping' });

/** The events of a streamed message. The tokens of the prompt are told at once, how many were cached only at the end. */
export async function* writeMessageStream(
  head: MessageHead,
  events: AsyncIterable<JobEvent>,
  countPrompt: () => number,
): AsyncGenerator<SseMessage, void, undefined> {
  const send = (type: string, fields: object): SseMessage => write({ type, ...fields });
  yield send('message_start', { message: writeEnvelope(head, countPrompt()) });
  for await (const event of toPartEvents(events, { hasText: false })) {
    if (event.type === 'open') {
      const { index, part } = event;
      const block = part.type === 'text' ? { type: 'text', text: '', citations: null } : startToolUse(part);
      yield send('content_block_start', { index, content_block: block });
      if (index === 0) yield PING;
    } else if (event.type === 'delta') {
      const { index, part, text } = event;
      const delta =
        part.type === 'text' ? { type: 'text_delta', text } : { type: 'input_json_delta', partial_json: text };
      yield send('content_block_delta', { index, delta });
    } else if (event.type === 'close') {
      yield send('content_block_stop', { index: event.index });
    } else {
      const { finished } = event;
      const delta = { ...toStop(finished), stop_details: null, container: null };
      yield send('message_delta', { delta, usage: toDeltaUsage(finished.usage) });
    }
  }
  yield send('message_stop', {});
}
