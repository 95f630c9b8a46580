/** Limits on what JSON contains, whatever its size. */
export interface JsonShapeLimits {
  readonly maxJsonDepth: number;
  /** Values at all levels; lists, objects and keys count `STRUCTURE_COST` each. */
  readonly maxJsonValues: number;
}

/** The first byte at which JSON exceeds a limit. */
export interface JsonExcess {
  readonly of: 'depth' | 'values';
  readonly index: number;
}

/** Weight of a list, an object or a key: each takes several times as long to build as a number or a string. */
export const STRUCTURE_COST = 6;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const COLON = 0x3a;
/** `[` and `{`, `]` and `}` differ in one bit: with it set, one comparison finds both. */
const CASE_BIT = 0x20;
const OPEN = 0x7b;
const CLOSE = 0x7d;

/** Looks at JSON before it is parsed, so that depth and number of values are bounded for any input. Null: it is within the limits. */
export function findJsonExcess(bytes: Uint8Array, { maxJsonDepth, maxJsonValues }: JsonShapeLimits): JsonExcess | null {
  let depth = 0;
  let numValues = 1;
  for (let index = 0; index < bytes.length; index++) {
    const byte = bytes[index]!;
    if (byte === QUOTE) index = endOfString(bytes, index);
    else if (byte === COMMA) numValues++;
    else if (byte === COLON) numValues += STRUCTURE_COST;
    else if ((byte | CASE_BIT) === OPEN) {
      numValues += STRUCTURE_COST;
      if (++depth > maxJsonDepth) return { of: 'depth', index };
    } else if ((byte | CASE_BIT) === CLOSE) depth--;
    if (numValues > maxJsonValues) return { of: 'values', index };
  }
  return null;
}

/** The text or number of a key at the first level of an object that is not worth parsing, such as its id; null: there is none. */
export function findTopValue(bytes: Uint8Array, key: string, maxBytes: number): string | number | null {
  const wanted = new TextEncoder().encode(JSON.stringify(key));
  let depth = 0;
  for (let index = 0; index < bytes.length; index++) {
    const byte = bytes[index]!;
    if (byte === QUOTE) {
      const end = endOfString(bytes, index);
      const isKey = depth === 1 && wanted.every((one, at) => bytes[index + at] === one);
      const value = isKey
        ? /^\s*:\s*("(?:[^"\\]|\\.)*"|-?[\d.eE+-]+)\s*[,}]/.exec(textOf(bytes, end + 1, maxBytes))
        : null;
      if (value !== null) return parseScalar(value[1]!);
      index = end;
    } else if ((byte | CASE_BIT) === OPEN) depth++;
    else if ((byte | CASE_BIT) === CLOSE) depth--;
  }
  return null;
}

const textOf = (bytes: Uint8Array, start: number, length: number): string =>
  new TextDecoder().decode(bytes.subarray(start, start + length));

function parseScalar(text: string): string | number | null {
  try {
    return JSON.parse(text) as string | number;
  } catch {
    return null;
  }
}

function endOfString(bytes: Uint8Array, start: number): number {
  for (let index = start + 1; index < bytes.length; index++) {
    if (bytes[index] === BACKSLASH) index++;
    else if (bytes[index] === QUOTE) return index;
  }
  return bytes.length;
}
