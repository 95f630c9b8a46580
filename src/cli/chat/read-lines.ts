import { Buffer } from 'node:buffer';
import { RuvLLMError } from '../../core/errors.ts';
import type { TextInput } from '../io.ts';
import { decodeInput, MAX_INPUT_BYTES } from '../read-input.ts';

const NEWLINE = 0x0a;

/** Lines of a stream as they arrive; throws `invalid_text` for invalid UTF-8 or an oversized line. */
export async function* readLines(stdin: TextInput, signal: AbortSignal): AsyncGenerator<string, void, undefined> {
  const onAbort = (): void => void (stdin as TextInput & { destroy?: () => void }).destroy?.();
  signal.addEventListener('abort', onAbort, { once: true });
  let start = 0;
  let pending: Buffer[] = [];
  // A newline byte is never part of another UTF-8 character, so complete lines can be decoded.
  const take = (): string => {
    const bytes = Buffer.concat(pending);
    const line = decodeInput(bytes, start);
    start += bytes.length + 1;
    pending = [];
    return line.replace(/\r$/, '');
  };
  try {
    for await (const chunk of stdin) {
      let bytes = Buffer.from(chunk as string | Uint8Array);
      for (let end = bytes.indexOf(NEWLINE); end >= 0; end = bytes.indexOf(NEWLINE)) {
        pending.push(bytes.subarray(0, end));
        bytes = bytes.subarray(end + 1);
        yield take();
      }
      pending.push(bytes);
      const numBytes = pending.reduce((sum, { length }) => sum + length, 0);
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
