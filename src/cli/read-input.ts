import { Buffer } from 'node:buffer';
import { RuvLLMError } from '../core/errors.ts';
import type { CommandContext } from './command.ts';
import type { TextInput } from './io.ts';

/** More text than any context holds; larger input is probably the wrong file. */
export const MAX_INPUT_BYTES = 64 << 20;

/**
 * Decodes UTF-8; throws `invalid_text` with the first bad byte, because replacement characters would silently change
 * the prompt. `start` is the offset of the bytes in the input.
 */
export function decodeInput(bytes: Uint8Array, start = 0): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    const offset = start + firstInvalidByte(bytes);
    throw new RuvLLMError('invalid_text', `stdin is not valid UTF-8 at byte ${offset}`, { data: { offset } });
  }
}

/** All of stdin as text, without the trailing line break that shells add. */
export async function readInput(stdin: TextInput, signal: AbortSignal): Promise<string> {
  const chunks: Buffer[] = [];
  let sizeBytes = 0;
  const onAbort = (): void => void (stdin as TextInput & { destroy?: () => void }).destroy?.();
  signal.addEventListener('abort', onAbort, { once: true });
  try {
    for await (const chunk of stdin) {
      const bytes = Buffer.from(chunk as string | Uint8Array);
      sizeBytes += bytes.length;
      if (sizeBytes > MAX_INPUT_BYTES) {
        throw new RuvLLMError('invalid_text', `stdin has more than ${MAX_INPUT_BYTES} bytes`);
      }
      chunks.push(bytes);
    }
  } catch (error) {
    if (signal.aborted) throw new RuvLLMError('aborted', 'cancelled while reading stdin', { cause: error });
    throw error;
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
  return decodeInput(Buffer.concat(chunks)).replace(/\r?\n$/, '');
}

function firstInvalidByte(bytes: Uint8Array): number {
  // Binary search for the longest prefix that decodes, where the last character may be incomplete.
  const isValid = (length: number): boolean => {
    try {
      new TextDecoder('utf-8', { fatal: true }).decode(bytes.subarray(0, length), { stream: true });
      return true;
    } catch {
      return false;
    }
  };
  let validLength = 0;
  let invalidLength = bytes.length + 1;
  while (invalidLength - validLength > 1) {
    const middle = (validLength + invalidLength) >>> 1;
    if (middle <= bytes.length && isValid(middle)) validLength = middle;
    else invalidLength = middle;
  }
  return validLength === bytes.length ? lastCharacterStart(bytes) : validLength;
}

/** Start of the incomplete last character. */
function lastCharacterStart(bytes: Uint8Array): number {
  let at = bytes.length - 1;
  while (at > 0 && (bytes[at]! & 0xc0) === 0x80) at--;
  return at;
}

/** The argument, or stdin if it is absent or `-`. */
export async function readArgumentOrInput(
  argument: string | undefined,
  { io, output }: Pick<CommandContext, 'io' | 'output'>,
): Promise<string> {
  if (argument !== undefined && argument !== '-') return argument;
  if (io.stdin.isTTY === true) output.note('reading from the terminal; press Ctrl-D on an empty line to finish');
  return await readInput(io.stdin, io.signal);
}
