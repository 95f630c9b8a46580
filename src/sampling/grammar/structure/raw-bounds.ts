import type { TextSearch } from './text-search.ts';
import { utf8Filler, utf8Step } from './utf8-steps.ts';

/** Length bounds of a raw text. Characters count when they start, including those of `until` until it is complete. */
export interface RawBounds {
  readonly min: number;
  readonly max: number;
  /** A count beyond which all are equivalent. */
  readonly cap: number;
  /** Per position of `until`: the characters started in it. */
  readonly untilChars: Int32Array;
  /** A character that occurs in neither `until` nor `without`. */
  readonly filler: number;
}

export interface RawPosition {
  readonly utf8: number;
  readonly until: number;
  readonly without: number;
  readonly count: number;
}

/** A completion: bytes that finish a character, fillers, then `until` from a position on. */
export interface RawClosing {
  readonly head: readonly number[];
  readonly numFillers: number;
  readonly from: number;
}

interface RawSearches {
  readonly until: TextSearch;
  readonly without: TextSearch | null;
}

const isBegin = (byte: number): boolean => (byte & 0xc0) !== 0x80;

/** Null: every character from space to tilde occurs in one of the texts. */
export function createRawBounds(min: number, max: number, { until, without }: RawSearches): RawBounds | null {
  const untilChars = new Int32Array(until.bytes.length + 1);
  until.bytes.forEach((byte, i) => (untilChars[i + 1] = untilChars[i]! + (isBegin(byte) ? 1 : 0)));
  // Letters first: filler text should not look like markup.
  for (let i = 0; i < 95; i++) {
    const filler = 0x20 + ((i + 0x58) % 95);
    if (until.bytes.includes(filler) || without?.bytes.includes(filler) === true) continue;
    const cap = max === Infinity ? min + untilChars.at(-1)! : Infinity;
    return { min, max, cap, untilChars, filler };
  }
  return null;
}

/** The count after one more byte. */
export function countByte({ cap }: RawBounds, count: number, byte: number): number {
  return isBegin(byte) ? Math.min(count + 1, cap) : count;
}

/** Whether a text may end with the first `place` bytes of `until` already among its `count` characters. */
export function mayEnd({ min, max, untilChars }: RawBounds, count: number, place: number): boolean {
  const length = count - untilChars[place]!;
  return length >= min && length <= max;
}

/** A short completion within the bounds; null: there is none, so the text may not get here. */
export function closeBounded(searches: RawSearches, bounds: RawBounds, position: RawPosition): RawClosing | null {
  const { until } = searches;
  const { utf8, count } = position;
  for (let place = position.until; ; place = until.shorter[place]!) {
    const isBetween = place > 0 || utf8 === 0;
    if (isBetween && mayEnd(bounds, count, place) && endsBehind(searches, position, place)) {
      return { head: [], numFillers: 0, from: place };
    }
    if (place === 0) break;
  }
  if (utf8 !== 0) return closeCharacter(searches, bounds, position);
  const numFillers = Math.max(1, bounds.min - count);
  return count + numFillers > bounds.max ? null : { head: [], numFillers, from: 0 };
}

/** Whether the rest of `until` ends the text, and nothing ends it before. */
function endsBehind({ until, without }: RawSearches, position: RawPosition, from: number): boolean {
  if (position.until === from) return true; // `without` never ends inside `until`
  let [at, avoided] = [position.until, position.without];
  for (let i = from; i < until.bytes.length; i++) {
    at = until.next(at, until.bytes[i]!);
    if (at === until.bytes.length) return i === at - 1;
    avoided = without === null ? 0 : without.next(avoided, until.bytes[i]!);
    if (avoided === without?.bytes.length) return false;
  }
  return false;
}

function closeCharacter(searches: RawSearches, bounds: RawBounds, position: RawPosition): RawClosing | null {
  const { until, without } = searches;
  const head: number[] = [];
  let { utf8, until: at, without: avoided } = position;
  while (utf8 !== 0) {
    const byte = utf8Filler(utf8);
    head.push(byte);
    utf8 = utf8Step(utf8, byte);
    at = until.next(at, byte);
    avoided = without === null ? 0 : without.next(avoided, byte);
    if (at === until.bytes.length || avoided === without?.bytes.length) return null;
  }
  const rest = closeBounded(searches, bounds, { utf8, until: at, without: avoided, count: position.count });
  return rest === null ? null : { ...rest, head };
}

/** Bytes of a completion. */
export function closingLength({ until }: RawSearches, { head, numFillers, from }: RawClosing): number {
  return head.length + numFillers + until.bytes.length - from;
}

/** Spells a completion; the caller checks its length first. */
export function spellClosing(searches: RawSearches, { filler }: RawBounds, closing: RawClosing): Uint8Array {
  const { head, numFillers, from } = closing;
  const bytes = new Uint8Array(closingLength(searches, closing)).fill(filler);
  bytes.set(head);
  bytes.set(searches.until.bytes.subarray(from), head.length + numFillers);
  return bytes;
}

/** The part of a count that matters to tokens of at most `maxBytes` bytes. */
export function countKey({ min, max, untilChars }: RawBounds, count: number, maxBytes: number): string {
  if (count + maxBytes < min) return '-';
  if (count - untilChars.at(-1)! >= min && count + maxBytes <= max) return '+';
  return String(count);
}
