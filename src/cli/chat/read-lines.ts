import { Buffer } from 'node:buffer';
import { RuvLLMError } from '../../core/errors.ts';
import type { TextInput } from '../io.ts';
import { decodeInput, MAX_INPUT_BYTES } from '../read-input.ts';

const NEWLINE = 0x0a;

/** The lines of a stream as they come; `invalid_text` when it is not UTF-8 or a line has no end. */
export async function* readLines(stdin: TextInput, signal: AbortSignal): AsyncGenerator<string, void, undefined> {
  const onAbort = (): void => void (stdin as TextInput & { destroy?: () => void }).destroy?.();
  signal.addEventListener('abort', onAbort, { once: true });
  let start = 0;
  let unfinished: Buffer[] = [];
  // Whole lines are decoded: a newline byte is never part of another character.
  const take = (): string => {
    const bytes = Buffer.concat(unfinished);
    const line = decodeInput(bytes, start);
    start += bytes.length + 1;
    unfinished = [];
    return line.replace(/\r$/, '');
  };
  try {
    for await (const chunk of stdin) {
      let rest = Buffer.from(chunk as string | Uint8Array);
      for (let end = rest.indexOf(NEWLINE); end >= 0; end = rest.indexOf(NEWLINE)) {
        unfinished.push(rest.subarray(0, end));
        rest = rest.subarray(end + 1);
        yield take();
      }
      unfinished.push(rest);
      const numBytes = unfinished.reduce((sum, { length }) => sum + length, 0);
      if (numBytes > MAX_INPUT_BYTES) {
        throw new RuvLLMError('invalid_text', `a line of stdin has more than ${MAX_INPUT_BYTES} bytes`);
      }
    }
    const last = take();
    if (last !== '') yield last;
  } catch (error) {
    if (signal.aborted) throw new RuvLLMError('aborted', 'cancelled while reading stdin', { cause: error });
    throw error;
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}
