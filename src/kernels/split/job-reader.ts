import type { ArenaRange, Offset, WeightMatrix } from '../contract.ts';
import type { Side } from './sides.ts';
import type { SplitArena } from './split-arena.ts';
import type { Visit } from './visit.ts';

/** A recorded operation. */
export interface Job {
  readonly name: string;
  /** Visits its memory; `run` gets the addresses of the side that `visit` translates to. */
  readonly visit: (visit: Visit) => (side: Side) => void;
}

/** A matrix and the side whose pack has it. */
export interface SplitMatrix extends WeightMatrix {
  readonly side: Side;
  readonly onSide: WeightMatrix;
}

/** The memory that an operation touches, and the sides that it must run on. */
export interface Access {
  readonly reads: ArenaRange[];
  readonly writes: ArenaRange[];
  readonly sides: Set<Side>;
  /** Contents that its ranges depend on. */
  readonly tables: ArenaRange[];
  pages: Offset | null;
}

/** An operation's ranges depend on numbers that only the GPU has. */
export class MissingContents {
  readonly ranges: readonly ArenaRange[];
  constructor(ranges: readonly ArenaRange[]) {
    this.ranges = ranges;
  }
}

/** Learns from an operation what it touches, and gives it the addresses of a side. */
export interface JobReader {
  collect(job: Job): Access | MissingContents;
  translate(job: Job, side: Side): () => void;
}

/** `ints` returns the contents of a table, or throws `MissingContents`. */
export function createJobReader(arena: SplitArena, ints: Visit['ints']): JobReader {
  /** A range within its allocation; null: none of the shared memory. */
  function shared(offset: Offset, sizeBytes: number): ArenaRange | null {
    if (sizeBytes === 0 || arena.onlySideOf(offset) !== null) return null;
    return { offset, sizeBytes: Math.min(sizeBytes, restOf(offset)) };
  }
  function restOf(offset: Offset): number {
    const segment = arena.segmentOf(offset);
    return segment.offset + segment.sizeBytes - offset;
  }
  function collect({ visit }: Job): Access {
    const access: Access = { reads: [], writes: [], sides: new Set(), tables: [], pages: null };
    const note =
      (...lists: ArenaRange[][]) =>
      (offset: Offset, sizeBytes: number): Offset => {
        if (sizeBytes === 0) return offset;
        const only = arena.onlySideOf(offset);
        if (only !== null) access.sides.add(only);
        const range = shared(offset, sizeBytes);
        if (range !== null) for (const list of lists) list.push(range);
        return offset;
      };
    const update = note(access.reads, access.writes);
    visit({
      read: note(access.reads),
      readRest: (offset) => note(access.reads)(offset, restOf(offset)),
      write: note(access.writes),
      update,
      updateAll(offset) {
        const segment = arena.segmentOf(offset);
        update(segment.offset, segment.sizeBytes);
        return offset;
      },
      matrix(weight) {
        access.sides.add((weight as SplitMatrix).side);
        return weight;
      },
      ints(offset, count) {
        access.tables.push({ offset, sizeBytes: count * 4 });
        return ints(offset, count);
      },
      pages: (base) => void (access.pages ??= base),
    });
    return access;
  }

  return {
    collect(job) {
      try {
        return collect(job);
      } catch (missing) {
        if (!(missing instanceof MissingContents)) throw missing;
        return missing;
      }
    },
    translate({ visit }, side) {
      // Nothing is at the address of an empty range.
      const at = (offset: Offset, sizeBytes: number): Offset => (sizeBytes === 0 ? 0 : arena.locate(offset, side));
      const locate = (offset: Offset): Offset => arena.locate(offset, side);
      const start = visit({
        read: at,
        readRest: locate,
        write: at,
        update: at,
        updateAll: locate,
        matrix: (weight) => (weight as SplitMatrix).onSide,
        ints,
        pages: () => {},
      });
      return () => start(side);
    },
  };
}
