import { RuvLLMError } from '../../core/errors.ts';
import type { TextInput } from '../io.ts';
import { MAX_INPUT_BYTES } from '../read-input.ts';

/** The lines of a stream as they come; `invalid_text` when it is not UTF-8 or a line has no end. */
export async function* readLines(stdin: TextInput, signal: AbortSignal): AsyncGenerator<string, void, undefined> {
  const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
  let rest = '';
  let numBytes = 0;
  const decode = (bytes?: Uint8Array): string => {
    try {
      return bytes === undefined ? decoder.decode() : decoder.decode(bytes, { stream: true });
    } catch {
      const from = numBytes - (bytes?.length ?? 0);
      throw new RuvLLMError('invalid_text', `stdin is not valid UTF-8 between bytes ${from} and ${numBytes}`, {
        data: { from, to: numBytes },
      });
    }
  };
  const onAbort = (): void => void (stdin as TextInput & { destroy?: () => void }).destroy?.();
  signal.addEventListener('abort', onAbort, { once: true });
  try {
    for await (const chunk of stdin) {
      const bytes = chunk as Uint8Array;
      numBytes += bytes.length;
      const lines = (rest + decode(bytes)).split('\n');
      rest = lines.pop()!;
      for (const line of lines) yield line.replace(/\r$/, '');
      if (rest.length > MAX_INPUT_BYTES) {
        throw new RuvLLMError('invalid_text', `a line of stdin has more than ${MAX_INPUT_BYTES} characters`);
      }
    }
    rest += decode();
    if (rest !== '') yield rest;
  } catch (error) {
    if (signal.aborted) throw new RuvLLMError('aborted', 'cancelled while reading stdin', { cause: error });
    throw error;
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}
