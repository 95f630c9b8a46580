/**
 * Classes of bytes that patterns rarely tell apart: where all bytes of a subtree are of classes that a state loops on,
 * its tokens are allowed without a walk. Two words of 32 classes each.
 */
const NUM_BYTES = 256;

/** Bytes of multi-byte characters, except the first of U+2000 to U+2FFF: the dot of patterns excludes two separators there. */
const NON_ASCII_CLASS = 0;
const SEPARATOR_CLASS = 1;
const SEPARATOR_BYTE = 0xe2;
const SEPARATOR_RANGE = [0x2000, 0x2fff] as const;
const NON_ASCII_RANGES = [
  [0x80, 0x1fff],
  [0x3000, 0xd7ff],
  [0xe000, 0x10ffff],
] as const;
/** Marks around control tokens: no state loops on them. */
const MARK_CLASS = 63;

const RANGES: readonly (readonly [from: string, to: string])[] = [
  ['a', 'f'],
  ['g', 'z'],
  ['A', 'F'],
  ['G', 'Z'],
  ['0', '9'],
  ['\0', '\b'],
  ['\v', '\f'],
  ['\x0e', '\x1f'],
];

function classifyBytes(): Uint8Array {
  const classes = new Uint8Array(NUM_BYTES).fill(NON_ASCII_CLASS);
  classes[SEPARATOR_BYTE] = SEPARATOR_CLASS;
  let numClasses = SEPARATOR_CLASS + 1;
  const isGrouped = new Uint8Array(NUM_BYTES);
  for (const [from, to] of RANGES) {
    for (let byte = from.charCodeAt(0); byte <= to.charCodeAt(0); byte++) {
      classes[byte] = numClasses;
      isGrouped[byte] = 1;
    }
    numClasses++;
  }
  for (let byte = 0; byte < 0x80; byte++) if (isGrouped[byte] === 0) classes[byte] = numClasses++;
  return classes;
}

const CLASSES = classifyBytes();

export const BACKSLASH_CLASS = CLASSES[0x5c]!;
/** The classes of multi-byte characters. */
export const WIDE_CLASSES: ClassSet = { low: (1 << NON_ASCII_CLASS) | (1 << SEPARATOR_CLASS), high: 0 };

export const classOfByte = (byte: number): number => CLASSES[byte] ?? MARK_CLASS;

/** A set of classes: bit c of `low`, or bit c - 32 of `high`. */
export interface ClassSet {
  readonly low: number;
  readonly high: number;
}

/** The classes all of whose bytes below 0x80 pass the test. */
export function asciiClassesWhere(test: (byte: number) => boolean): ClassSet {
  const failed = new Uint8Array(64);
  for (let byte = 0; byte < 0x80; byte++) if (!test(byte)) failed[CLASSES[byte]!] = 1;
  let [low, high] = [0, 0];
  for (let byte = 0; byte < 0x80; byte++) {
    const number = CLASSES[byte]!;
    if (failed[number] === 1) continue;
    if (number < 32) low |= 1 << number;
    else high |= 1 << (number - 32);
  }
  return { low, high };
}

/** The classes of multi-byte characters that pass the test from first to last. */
export function wideClassesWhere(test: (lo: number, hi: number) => boolean): ClassSet {
  const isWide = NON_ASCII_RANGES.every(([lo, hi]) => test(lo, hi));
  const low = (isWide ? 1 << NON_ASCII_CLASS : 0) | (test(...SEPARATOR_RANGE) ? 1 << SEPARATOR_CLASS : 0);
  return { low, high: 0 };
}

export const unionOfClasses = (a: ClassSet, b: ClassSet): ClassSet => ({ low: a.low | b.low, high: a.high | b.high });

export function withClass({ low, high }: ClassSet, number: number): ClassSet {
  return number < 32 ? { low: low | (1 << number), high } : { low, high: high | (1 << (number - 32)) };
}

export function withoutClass({ low, high }: ClassSet, number: number): ClassSet {
  return number < 32 ? { low: low & ~(1 << number), high } : { low, high: high & ~(1 << (number - 32)) };
}
