import { RuvLLMError } from './errors.ts';

export interface SseLimits {
  /** Bytes of a stream together. */
  readonly maxBytes: number;
  /** Characters of one event. */
  readonly maxEventChars: number;
}

function tooLarge(what: string, limit: number): never {
  throw new RuvLLMError('remote_failed', `${what}, at most ${limit} are read`, { data: { limit } });
}

/** The data of each event of a stream; names, ids and comments are passed over. Nothing is kept beyond its limits. */
export async function* readSse(
  chunks: AsyncIterable<Uint8Array>,
  { maxBytes, maxEventChars }: SseLimits,
): AsyncGenerator<string, void, undefined> {
  const decoder = new TextDecoder();
  let numBytes = 0;
  let rest = '';
  let data: string[] = [];
  let length = 0;
  for await (const chunk of chunks) {
    numBytes += chunk.length;
    if (numBytes > maxBytes) tooLarge(`the stream has more than ${maxBytes} bytes`, maxBytes);
    const text = decoder.decode(chunk, { stream: true });
    // The beginning of a line is looked at once, however many chunks the line has; the second half of a break may come with the next one.
    if (!/[\r\n]/.test(text) && !rest.endsWith('\r')) {
      rest += text;
      if (rest.length > maxEventChars) tooLarge(`a line has more than ${maxEventChars} characters`, maxEventChars);
      continue;
    }
    rest += text;
    // A line break at the very end may be the first half of one.
    const lines = rest.split(/\r\n|\n|\r(?!$)/);
    rest = lines.pop()!;
    if (rest.length > maxEventChars) tooLarge(`a line has more than ${maxEventChars} characters`, maxEventChars);
    for (const line of lines) {
      if (line === '') {
        if (data.length > 0) yield data.join('\n');
        data = [];
        length = 0;
      } else if (line.startsWith('data:')) {
        const value = line.slice(line[5] === ' ' ? 6 : 5);
        length += value.length;
        if (length > maxEventChars) tooLarge(`an event has more than ${maxEventChars} characters`, maxEventChars);
        data.push(value);
      }
    }
  }
}
