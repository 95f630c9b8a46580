/** Text that arrives in chunks. Readers are generators that yield when they need more. */
export interface Input {
  /** The buffered text. Only the parser's main loop and `CallContext.release` drop text from its front. */
  text: string;
  position: number;
  isEnded: boolean;
  /** Reading stops here: the call would exceed its maximum length. */
  limit: number;
  isOverLimit: boolean;
  /** A reader stopped because the text ended. */
  isCutOff: boolean;
}

export type Reader<T> = Generator<void, T>;

export function createInput(): Input {
  return { text: '', position: 0, isEnded: false, limit: Infinity, isOverLimit: false, isCutOff: false };
}

/** Waits for another character; false at the end. */
export function* more(input: Input): Reader<boolean> {
  while (input.position >= input.text.length || input.position >= input.limit) {
    if (input.position >= input.limit) input.isOverLimit = true;
    if (input.isEnded) input.isCutOff = true;
    if (input.isEnded || input.isOverLimit) return false;
    yield;
  }
  return true;
}

export function* skip(input: Input, literal: string): Reader<boolean> {
  for (;;) {
    const { text, position } = input;
    if (text.startsWith(literal, position)) {
      input.position += literal.length;
      return true;
    }
    if (text.length - position >= literal.length || !literal.startsWith(text.slice(position))) return false;
    if (input.isEnded) {
      input.isCutOff = true;
      return false;
    }
    yield;
  }
}

/** Skips the first of `literals` that is present; null: none. */
export function* skipOneOf(input: Input, literals: readonly string[]): Reader<string | null> {
  for (const literal of literals) if (yield* skip(input, literal)) return literal;
  return null;
}

const SPACES: ReadonlySet<string> = new Set([' ', '\n', '\r', '\t']);

export function isSpace(unit: string): boolean {
  return SPACES.has(unit);
}

/** Skips whitespace, at most `maxChars`. */
export function* skipSpaces(input: Input, maxChars: number): Reader<void> {
  const end = input.position + maxChars;
  while (input.position < end && (yield* more(input)) && isSpace(input.text[input.position]!)) input.position++;
}

/** Reads to the nearest of `stops` and skips it; null: none within `maxChars`. No stop contains another. */
export function* readUntil(
  input: Input,
  stops: readonly string[],
  maxChars: number,
): Reader<{ text: string; stop: string } | null> {
  const start = input.position;
  const end = Math.min(start + maxChars, input.limit);
  const longest = Math.max(...stops.map((stop) => stop.length));
  let from = start;
  for (;;) {
    let at = Infinity;
    let nearest = '';
    for (const stop of stops) {
      const place = input.text.indexOf(stop, from);
      if (place >= 0 && place < at) [at, nearest] = [place, stop];
    }
    if (at < Infinity) {
      if (at > end) break;
      input.position = at + nearest.length;
      return { text: input.text.slice(start, at), stop: nearest };
    }
    if (input.text.length - longest > end) break;
    if (input.isEnded) {
      input.isCutOff = true;
      return null;
    }
    from = Math.max(start, input.text.length - longest + 1);
    yield;
  }
  if (end === input.limit) input.isOverLimit = true;
  return null;
}
