import { escapeWithout } from './json-without.ts';
import type { JsonPart, Part, RawPart } from './parts.ts';
import type { GrammarState } from '../types.ts';
import { closeBounded, closingLength, type RawClosing, spellClosing } from './raw-bounds.ts';
import type { Frame, RawThread, Thread } from './threads.ts';
import { utf8Filler, utf8Step } from './utf8-steps.ts';

const NOTHING = new Uint8Array(0);

const boundedClosing = (thread: RawThread): RawClosing =>
  closeBounded(thread.place.part, thread.place.part.bounds!, thread)!; // texts that cannot end are rejected earlier

/** Bytes of the rest of a raw text, which may be too many to write. */
function rawClosingBytes(thread: RawThread): number {
  const { part } = thread.place;
  if (part.bounds !== null) return closingLength(part, boundedClosing(thread));
  return closeRaw(thread, Infinity)!.length;
}

/** The rest of a raw text: an unfinished character, then `until`. */
function closeRaw(thread: RawThread, maxBytes: number): Uint8Array | null {
  const { place, utf8, until } = thread;
  const { bounds } = place.part;
  if (bounds !== null) {
    const closing = boundedClosing(thread);
    return closingLength(place.part, closing) > maxBytes ? null : spellClosing(place.part, bounds, closing);
  }
  const { bytes, next } = place.part.until;
  // An unfinished character of `until` itself continues as that.
  if (utf8 !== 0 && utf8Step(utf8, bytes[until]!) >= 0) return bytes.subarray(until);
  const head: number[] = [];
  let [state, at] = [utf8, until];
  while (state !== 0) {
    const byte = utf8Filler(state);
    head.push(byte);
    state = utf8Step(state, byte);
    at = next(at, byte);
  }
  return head.length === 0 ? bytes.subarray(at) : Uint8Array.from([...head, ...bytes.subarray(at)]);
}

function startRaw(part: RawPart, maxBytes: number): Uint8Array | null {
  const { bounds, least } = part;
  if (bounds === null) return part.until.bytes;
  return least > maxBytes ? null : spellClosing(part, bounds, { head: [], numFillers: bounds.min, from: 0 });
}

function closeJson(part: JsonPart, state: GrammarState, without: number, maxBytes: number): Uint8Array | null {
  const bytes = part.grammar.closing(state, maxBytes);
  return bytes === null || !part.mayNeedEscapes ? bytes : escapeWithout(bytes, part.without!, without);
}

/** Longer JSON is counted without its escapes: a minimum may be a billion, and no answer is that long. */
const MAX_WRITTEN = 65_536;

/** Bytes of the shortest completion of the JSON alone. */
export function jsonClosingBytes(part: JsonPart, state: GrammarState, without: number): number {
  const numBytes = part.grammar.closingBytes(state);
  if (!part.mayNeedEscapes || numBytes > MAX_WRITTEN) return numBytes;
  return closeJson(part, state, without, MAX_WRITTEN)?.length ?? Infinity;
}

/** Bytes of the shortest completion of a thread. */
export function closingBytes(thread: Thread): number {
  if (thread.kind === 'done') return 0;
  const around = ('place' in thread ? thread.place.up : thread.up)?.least ?? 0;
  if (thread.kind === 'text') return thread.part.bytes.length - thread.at + around;
  if (thread.kind === 'raw') return rawClosingBytes(thread) + around;
  if (thread.kind === 'free') return around;
  return jsonClosingBytes(thread.part, thread.state, thread.without) + around;
}

/** The shortest completion of a thread; null if longer than `maxBytes`. */
export function closeThread(thread: Thread, maxBytes: number): Uint8Array | null {
  const pieces: Uint8Array[] = [];
  let numBytes = 0;
  const write = (bytes: Uint8Array | null): boolean => {
    if (bytes === null) return false;
    numBytes += bytes.length;
    pieces.push(bytes);
    return numBytes <= maxBytes;
  };

  const writePart = (part: Part): boolean => {
    switch (part.kind) {
      case 'text':
        return write(part.bytes);
      case 'json':
        return write(closeJson(part, part.grammar.start, 0, maxBytes));
      case 'raw':
        return write(startRaw(part, maxBytes));
      case 'free':
        return true;
      case 'sequence':
        return part.items.every(writePart);
      case 'choice':
        return writePart(part.items.reduce((best, item) => (item.least < best.least ? item : best)));
      case 'repeat':
        return part.min === 0 || (writePart(part.item) && writeItems(part.min - 1, [part.separator, part.item]));
    }
  };
  const writeItems = (count: number, parts: readonly Part[]): boolean => {
    // Writing is bounded, even with a minimum of a billion.
    for (let i = 0; i < count; i++) if (!parts.every(writePart)) return false;
    return true;
  };
  const writeFrames = (from: Frame | null): boolean => {
    for (let frame = from; frame !== null; frame = frame.up) {
      if (frame.kind === 'sequence' && !frame.part.items.slice(frame.next).every(writePart)) return false;
      if (frame.kind !== 'repeat' && frame.kind !== 'separator') continue;
      const { part, count } = frame;
      if (frame.kind === 'separator' && !writePart(part.item)) return false;
      if (!writeItems(part.min - count, [part.separator, part.item])) return false;
    }
    return true;
  };
  const writeThread = (): boolean => {
    if (thread.kind === 'text') return write(thread.part.bytes.subarray(thread.at));
    if (thread.kind === 'raw') return write(closeRaw(thread, maxBytes));
    if (thread.kind === 'json') return write(closeJson(thread.part, thread.state, thread.without, maxBytes));
    return true;
  };

  if (thread.kind === 'done') return NOTHING;
  if (!writeThread() || !writeFrames('place' in thread ? thread.place.up : thread.up)) return null;
  const all = new Uint8Array(numBytes);
  let at = 0;
  for (const piece of pieces) {
    all.set(piece, at);
    at += piece.length;
  }
  return all;
}
