import { ApiError, isAbort, messageOf } from './errors.ts';
import { messages } from '../messages/index.ts';

/** One server-sent event. */
export interface SseEvent {
  readonly event: string;
  readonly data: string;
}

/** Protects the page's memory from a stream that never ends an event. */
const MAX_EVENT_CHARS = 8 * 2 ** 20;

/** Takes text in chunks of any size and returns complete events. */
export interface SseParser {
  push(text: string): SseEvent[];
}

/** Parses events per the HTML standard: LF, CR or CRLF ends a line; a byte order mark and comments are skipped. */
export function createSseParser(): SseParser {
  let buffer = '';
  let data: string[] = [];
  let dataChars = 0;
  let event = '';
  let isStart = true;
  return {
    push(text) {
      buffer += text;
      if (isStart && buffer !== '') {
        isStart = false;
        if (buffer.startsWith('\uFEFF')) buffer = buffer.slice(1);
      }
      const events: SseEvent[] = [];
      let from = 0;
      const lineEnd = /\r\n|\n|\r/g;
      for (let match = lineEnd.exec(buffer); match !== null; match = lineEnd.exec(buffer)) {
        // A CR at the end may be half of a CRLF whose LF is in the next chunk.
        if (match[0] === '\r' && lineEnd.lastIndex === buffer.length) break;
        const line = buffer.slice(from, match.index);
        from = lineEnd.lastIndex;
        if (line === '') {
          if (data.length > 0) events.push({ event: event === '' ? 'message' : event, data: data.join('\n') });
          [data, dataChars, event] = [[], 0, ''];
          continue;
        }
        const colon = line.indexOf(':');
        const name = colon < 0 ? line : line.slice(0, colon);
        const value = colon < 0 ? '' : line.slice(line[colon + 1] === ' ' ? colon + 2 : colon + 1);
        if (name === 'event') event = value;
        if (name === 'data') {
          data.push(value);
          dataChars += value.length;
        }
      }
      buffer = buffer.slice(from);
      if (buffer.length + dataChars > MAX_EVENT_CHARS) {
        throw new Error(`Stream event is longer than ${MAX_EVENT_CHARS} characters.`);
      }
      return events;
    },
  };
}

/** Yields the events of a response body; cancels the request when the consumer stops early. */
export async function* readSse(body: ReadableStream<Uint8Array>): AsyncGenerator<SseEvent, void, undefined> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  const parser = createSseParser();
  let isDone = false;
  try {
    for (;;) {
      const { value, done } = await reader.read().catch((error: unknown) => {
        if (isAbort(error)) throw error;
        throw new ApiError(messages.api.lostConnection(messageOf(error)), {
          status: 0,
          code: 'unreachable',
        });
      });
      isDone = done;
      if (done) return;
      yield* parser.push(decoder.decode(value, { stream: true }));
    }
  } finally {
    if (!isDone) await reader.cancel().catch(() => {});
  }
}
