/**
 * Classes of bytes that patterns rarely tell apart: where all bytes of a subtree are of classes that a state loops on,
 * its tokens are allowed without a walk. Two words of 32 classes each.
 */
const NUM_BYTES = 256;

/** Bytes of multi-byte characters. */
export const NON_ASCII_CLASS = 0;
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
  let numClasses = NON_ASCII_CLASS + 1;
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

export function withClass({ low, high }: ClassSet, number: number): ClassSet {
  return number < 32 ? { low: low | (1 << number), high } : { low, high: high | (1 << (number - 32)) };
}

export function withoutClass({ low, high }: ClassSet, number: number): ClassSet {
  return number < 32 ? { low: low & ~(1 << number), high } : { low, high: high & ~(1 << (number - 32)) };
}
