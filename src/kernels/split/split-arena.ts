import { assert, RuvLLMError } from '../../core/errors.ts';
import { type Arena, alignArena, type ArenaRange, type KernelPack, type Offset } from '../contract.ts';
import { lastFrom, takeRoom } from '../arena-alignment.ts';
import { SIDES, type Side } from './sides.ts';

/** An allocation: its place in the arena of each side that has it. */
export interface Segment {
  readonly offset: Offset;
  readonly sizeBytes: number;
  readonly at: Readonly<Record<Side, Offset | null>>;
}

/** One address space over the arenas of two packs. Data is on both sides, unless it was allocated on one. */
export interface SplitArena extends Arena {
  allocateOn(side: Side, sizeBytes: number, what: string): Offset;
  /** Counts a matrix, which lies in one side's arena; returns its address. */
  reserveMatrix(sizeBytes: number, what: string): Offset;
  /** The allocation that contains an address. */
  segmentOf(offset: Offset): Segment;
  /** The only side of an address; null: both. */
  onlySideOf(offset: Offset): Side | null;
  /** An address in the arena of a side. */
  locate(offset: Offset, side: Side): Offset;
  /** The parts of a range of allocations that are on both sides, by allocation. */
  sharedPartsOf(range: ArenaRange): ArenaRange[];
}

export interface SplitArenaOptions {
  readonly arenaBytes: number;
  readonly packs: Readonly<Record<Side, KernelPack>>;
  /** Called before the caller gets a view, which it may write. */
  readonly onView: (range: ArenaRange, segment: Segment) => void;
}

export function createSplitArena({ arenaBytes, packs, onView }: SplitArenaOptions): SplitArena {
  const segments: Segment[] = [];
  let used = 0;

  function take(sizeBytes: number, what: string): Offset {
    const taken = takeRoom(sizeBytes, arenaBytes - used, what);
    const offset = used;
    used += taken;
    return offset;
  }
  function place(sizeBytes: number, what: string, sides: readonly Side[]): Offset {
    const offset = take(sizeBytes, what);
    const placeOn = (side: Side): Offset | null =>
      sides.includes(side) ? packs[side].arena.allocate(sizeBytes, what) : null;
    if (sizeBytes > 0) {
      const at = { gpu: placeOn('gpu'), cpu: placeOn('cpu') };
      segments.push({ offset, sizeBytes: alignArena(sizeBytes), at });
    }
    return offset;
  }
  function segmentOf(offset: Offset): Segment {
    const segment = lastFrom(segments, offset);
    if (segment === undefined || offset > segment.offset + segment.sizeBytes) {
      throw new RuvLLMError('internal', `byte ${offset} is in no allocation of the arena`);
    }
    return segment;
  }
  function locate(offset: Offset, side: Side): Offset {
    const segment = segmentOf(offset);
    const start = segment.at[side];
    assert(start !== null, `byte ${offset} is not in the memory of the ${side} side`);
    return start + offset - segment.offset;
  }
  /** The host's memory is that of the CPU side. */
  function view(offset: Offset, sizeBytes: number): Offset {
    if (sizeBytes === 0) return 0;
    onView({ offset, sizeBytes }, segmentOf(offset));
    return locate(offset, 'cpu');
  }
  const { arena: host } = packs.cpu;

  return {
    sizeBytes: arenaBytes,
    get usedBytes() {
      return used;
    },
    allocate: (sizeBytes, what) => place(sizeBytes, what, SIDES),
    allocateOn: (side, sizeBytes, what) => place(sizeBytes, what, [side]),
    reserveMatrix: take,
    segmentOf,
    onlySideOf(offset) {
      const { at } = segmentOf(offset);
      if (at.gpu === null) return 'cpu';
      return at.cpu === null ? 'gpu' : null;
    },
    locate,
    sharedPartsOf({ offset, sizeBytes }) {
      const parts: ArenaRange[] = [];
      for (let start = offset, end = offset + sizeBytes; start < end;) {
        const segment = segmentOf(start);
        const next = Math.min(end, segment.offset + segment.sizeBytes);
        assert(next > start, `byte ${start} is in no allocation of the arena`);
        if (segment.at.gpu !== null && segment.at.cpu !== null) parts.push({ offset: start, sizeBytes: next - start });
        start = next;
      }
      return parts;
    },
    f32: (offset, length) => host.f32(view(offset, length * 4), length),
    i32: (offset, length) => host.i32(view(offset, length * 4), length),
    u16: (offset, length) => host.u16(view(offset, length * 2), length),
    u8: (offset, length) => host.u8(view(offset, length), length),
  };
}
