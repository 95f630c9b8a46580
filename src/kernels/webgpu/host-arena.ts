import { RuvLLMError } from '../../core/errors.ts';
import type { Arena, ArenaRange, Offset } from '../contract.ts';
import { lastFrom, takeRoom } from '../arena-alignment.ts';
import { mergeRanges } from '../ranges.ts';

/** A piece of the arena that `allocate` returned; its host copy exists from the first view on. */
interface Segment {
  readonly offset: Offset;
  readonly sizeBytes: number;
  host: ArrayBuffer | null;
}

/** The host's side of an arena whose truth is on a device. */
export interface HostArena extends Arena {
  /** Bytes of everything but matrices; offsets are below it. */
  readonly dataBytes: number;
  /** Counts a matrix, which has no host copy. */
  reserveMatrix(sizeBytes: number, what: string): void;
  /** The ranges of the views since the last call, aligned to words: the host may have written them. */
  takeViewed(): ArenaRange[];
  /** The same range as parts that each lie in one allocation; neighbours have separate host copies. */
  splitAtSegments(range: ArenaRange): ArenaRange[];
  /** The host copy of a range of one allocation, without counting as a view. */
  bytesOf(range: ArenaRange): Uint8Array;
}

const WORD = 4;

/** Views are windows on host copies: the pack uploads them before it runs operations, and refreshes those that are read. */
export function createHostArena(arenaBytes: number): HostArena {
  const segments: Segment[] = [];
  let [dataBytes, matrixBytes] = [0, 0];
  let viewed: ArenaRange[] = [];

  const take = (sizeBytes: number, what: string): number =>
    takeRoom(sizeBytes, arenaBytes - dataBytes - matrixBytes, what);
  function segmentOf(offset: Offset, sizeBytes: number): Segment {
    const segment = lastFrom(segments, offset);
    if (segment === undefined || offset + sizeBytes > segment.offset + segment.sizeBytes) {
      throw new RuvLLMError('internal', `bytes ${offset} to ${offset + sizeBytes} are in no allocation of the arena`);
    }
    return segment;
  }
  function place(offset: Offset, sizeBytes: number): { buffer: ArrayBuffer; at: number } {
    const segment = segmentOf(offset, sizeBytes);
    segment.host ??= new ArrayBuffer(segment.sizeBytes);
    return { buffer: segment.host, at: offset - segment.offset };
  }
  function view(offset: Offset, sizeBytes: number): { buffer: ArrayBuffer; at: number } {
    if (sizeBytes === 0) return { buffer: new ArrayBuffer(0), at: 0 };
    const first = offset - (offset % WORD);
    viewed.push({ offset: first, sizeBytes: Math.ceil((offset + sizeBytes - first) / WORD) * WORD });
    return place(offset, sizeBytes);
  }

  return {
    sizeBytes: arenaBytes,
    get usedBytes() {
      return dataBytes + matrixBytes;
    },
    get dataBytes() {
      return dataBytes;
    },
    allocate(sizeBytes, what) {
      const aligned = take(sizeBytes, what);
      const offset = dataBytes;
      if (aligned > 0) segments.push({ offset, sizeBytes: aligned, host: null });
      dataBytes += aligned;
      return offset;
    },
    reserveMatrix: (sizeBytes, what) => void (matrixBytes += take(sizeBytes, what)),
    takeViewed() {
      const ranges = mergeRanges(viewed);
      viewed = [];
      return ranges.flatMap((range) => splitAtSegments(range));
    },
    splitAtSegments,
    bytesOf(range) {
      const { buffer, at } = place(range.offset, range.sizeBytes);
      return new Uint8Array(buffer, at, range.sizeBytes);
    },
    f32(offset, length) {
      const { buffer, at } = view(offset, length * 4);
      return new Float32Array(buffer, at, length);
    },
    i32(offset, length) {
      const { buffer, at } = view(offset, length * 4);
      return new Int32Array(buffer, at, length);
    },
    u16(offset, length) {
      const { buffer, at } = view(offset, length * 2);
      return new Uint16Array(buffer, at, length);
    },
    u8(offset, length) {
      const { buffer, at } = view(offset, length);
      return new Uint8Array(buffer, at, length);
    },
  };

  function splitAtSegments({ offset, sizeBytes }: ArenaRange): ArenaRange[] {
    const parts: ArenaRange[] = [];
    for (let at = offset; at < offset + sizeBytes;) {
      const segment = segmentOf(at, 0);
      const end = Math.min(offset + sizeBytes, segment.offset + segment.sizeBytes);
      parts.push({ offset: at, sizeBytes: end - at });
      at = end;
    }
    return parts;
  }
}
