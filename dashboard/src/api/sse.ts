import { ApiError, isAbort, messageOf } from './errors.ts';

/** One event of a stream. */
export interface SseEvent {
  readonly event: string;
  readonly data: string;
}

/** An event longer than this is no event: a stream without an end must not fill the page. */
const MAX_EVENT_CHARS = 8 * 2 ** 20;

/** Takes a stream of text in pieces, wherever it was cut, and gives whole events. */
export interface SseParser {
  push(text: string): SseEvent[];
}

/** Reads events as the HTML standard has it: LF, CR or CRLF end a line, a byte order mark is skipped, comments say nothing. */
export function createSseParser(): SseParser {
  let rest = '';
  let data: string[] = [];
  let dataChars = 0;
  let event = '';
  let isStart = true;
  return {
    push(text) {
      rest += text;
      if (isStart && rest !== '') {
        isStart = false;
        if (rest.startsWith('\uFEFF')) rest = rest.slice(1);
      }
      const events: SseEvent[] = [];
      let from = 0;
      const lineEnd = /\r\n|\n|\r/g;
      for (let match = lineEnd.exec(rest); match !== null; match = lineEnd.exec(rest)) {
        // A CR at the end may be half of a CRLF whose LF is still to come.
        if (match[0] === '\r' && lineEnd.lastIndex === rest.length) break;
        const line = rest.slice(from, match.index);
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
      rest = rest.slice(from);
      if (rest.length + dataChars > MAX_EVENT_CHARS) {
        throw new Error(`an event of the stream is longer than ${MAX_EVENT_CHARS} characters`);
      }
      return events;
    },
  };
}

/** The events of a body; whoever stops reading ends the request. */
export async function* readSse(body: ReadableStream<Uint8Array>): AsyncGenerator<SseEvent, void, undefined> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  const parser = createSseParser();
  let isDone = false;
  try {
    for (;;) {
      const { value, done } = await reader.read().catch((error: unknown) => {
        if (isAbort(error)) throw error;
        throw new ApiError(`the connection to the server was lost: ${messageOf(error)}`, {
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
