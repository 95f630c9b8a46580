import type { CallContext } from './types.ts';
import type { Input, Reader } from './input.ts';
import { more } from './input.ts';
import { createJsonScanner } from './json-scan.ts';

/** Reads one complete JSON value from its first character; null: malformed, cut off or longer than `maxChars`. */
export function* readJson(input: Input, maxChars: number): Reader<string | null> {
  const scan = createJsonScanner();
  const start = input.position;
  while (yield* more(input)) {
    const result = scan(input.text[input.position]!);
    if (result === 'bad' || input.position - start >= maxChars) return null;
    if (result !== 'after') input.position++;
    if (result !== 'more') return input.text.slice(start, input.position);
  }
  return null;
}

/** Reads a JSON object and reports each character as it arrives; false: malformed or cut off. */
export function* streamJsonObject(context: CallContext): Reader<boolean> {
  const { input } = context;
  if (!(yield* more(input)) || input.text[input.position] !== '{') return false;
  const scan = createJsonScanner();
  let reportedEnd = input.position;
  const tell = (): void => {
    if (input.position > reportedEnd) context.argument(input.text.slice(reportedEnd, input.position));
    reportedEnd = input.position;
  };
  for (;;) {
    if (input.position >= Math.min(input.text.length, input.limit)) {
      tell();
      context.release();
      reportedEnd = input.position;
      if (!(yield* more(input))) return false;
    }
    const result = scan(input.text[input.position]!);
    if (result === 'more' || result === 'done') input.position++;
    if (result === 'more') continue;
    tell();
    return result === 'done';
  }
}

/** The value of a JSON string; null: not a string. */
export function asString(json: string): string | null {
  const value = parseJson(json);
  return typeof value === 'string' ? value : null;
}

export function isJsonObject(text: string): boolean {
  const value = parseJson(text);
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The value, or undefined if `text` is not JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}
