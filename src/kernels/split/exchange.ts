import { assert } from '../../core/errors.ts';
import type { ArenaRange, KernelPack, Offset, WeightMatrix } from '../contract.ts';
import { createNewestMap, type NewestMap } from './newest-map.ts';
import { otherSide, type Side } from './sides.ts';
import { createSplitArena, type SplitArena } from './split-arena.ts';
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

/**
 * Chooses the side of an operation without weights; null: the side of its first input. `pages`: the address of its KV
 * pages, which stay on one side, because packs may remember what they wrote to them.
 */
export type SideOfOperation = (name: string, pages: Offset | null) => Side | null;

export interface ExchangeOptions {
  readonly arenaBytes: number;
  readonly packs: Readonly<Record<Side, KernelPack>>;
  readonly sideOfOperation: SideOfOperation;
}

/** Runs operations in order on two packs, and copies ranges where the side changes. */
export interface Exchange {
  readonly arena: SplitArena;
  /** Runs it now, or when the operations before it have results. */
  add(job: Job): void;
  /** See `KernelPack.sync`. */
  sync(reads?: readonly ArenaRange[]): Promise<void>;
  /** See `KernelPack.finish`; only if the GPU side computes while the caller waits, too. */
  finish(): void;
}

/** The memory that an operation touches, and the sides that it must run on. */
interface Access {
  readonly reads: ArenaRange[];
  readonly writes: ArenaRange[];
  readonly sides: Set<Side>;
  pages: Offset | null;
}

interface WaitingJob {
  readonly job: Job;
  /** Decided once: results that arrive meanwhile do not change it. */
  side: Side | null;
}

/** An operation's ranges depend on numbers that only the GPU has. */
class MissingContents {
  readonly ranges: readonly ArenaRange[];
  constructor(ranges: readonly ArenaRange[]) {
    this.ranges = ranges;
  }
}

const overlaps = (a: ArenaRange, b: ArenaRange): boolean =>
  a.offset < b.offset + b.sizeBytes && b.offset < a.offset + a.sizeBytes;

export function createExchange({ arenaBytes, packs, sideOfOperation }: ExchangeOptions): Exchange {
  const newest: NewestMap = createNewestMap();
  const arena = createSplitArena({
    arenaBytes,
    packs,
    // The caller may write to it: until the next operation, the host has the newest bytes.
    onView: (range) => {
      if (arena.onlySideOf(range.offset) === null) newest.mark(range, 'cpu');
    },
  });
  /** Operations that wait for results of the GPU, in their order. */
  const queue: WaitingJob[] = [];
  /** Ranges that unfinished operations of each side read and write. */
  const touched: Record<Side, ArenaRange[]> = { gpu: [], cpu: [] };
  let lastSide: Side = 'cpu';

  /** Completes a side's operations; false: that takes an asynchronous `sync`. */
  function complete(side: Side): boolean {
    if (touched[side].length === 0) return true;
    const { finish } = packs[side];
    if (finish === undefined) return false;
    finish();
    touched[side] = [];
    return true;
  }
  const isTouched = (side: Side, ranges: readonly ArenaRange[]): boolean =>
    touched[side].some((busy) => ranges.some((range) => overlaps(busy, range)));

  function copy(ranges: readonly ArenaRange[], from: Side): void {
    const to = otherSide(from);
    for (const range of ranges) {
      const { offset, sizeBytes } = range;
      const source = packs[from].arena.u8(arena.locate(offset, from), sizeBytes);
      packs[to].arena.u8(arena.locate(offset, to), sizeBytes).set(source);
      newest.mark(range, 'both');
    }
  }
  /** Copies results of the GPU to the host; false: it must be awaited first. */
  function bring(ranges: readonly ArenaRange[]): boolean {
    if (ranges.length === 0) return true;
    if (packs.gpu.finish === undefined) return false;
    complete('gpu');
    receive(ranges);
    return true;
  }
  function receive(ranges: readonly ArenaRange[]): void {
    if (isTouched('cpu', ranges)) assert(complete('cpu'), 'the CPU side cannot compute while the caller waits');
    copy(ranges, 'gpu');
  }

  /** A range within its allocation; null: none of the shared memory. */
  function shared(offset: Offset, sizeBytes: number): ArenaRange | null {
    if (sizeBytes === 0 || arena.onlySideOf(offset) !== null) return null;
    const segment = arena.segmentOf(offset);
    return { offset, sizeBytes: Math.min(sizeBytes, segment.offset + segment.sizeBytes - offset) };
  }
  function ints(offset: Offset, count: number): Int32Array {
    if (count === 0) return new Int32Array(0);
    const range = { offset, sizeBytes: count * 4 };
    const missing = arena.onlySideOf(offset) === null ? newest.onlyOn('gpu', range) : [];
    if (missing.length > 0) throw new MissingContents(missing);
    if (isTouched('cpu', [range])) complete('cpu');
    return packs.cpu.arena.i32(arena.locate(offset, 'cpu'), count);
  }

  function collect({ visit }: Job): Access {
    const access: Access = { reads: [], writes: [], sides: new Set(), pages: null };
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
      ints,
      pages: (base) => void (access.pages ??= base),
    });
    return access;
  }

  function sideOf(name: string, { reads, sides, pages }: Access): Side {
    assert(sides.size <= 1, `${name} has weights or pages on both sides`);
    for (const side of sides) return side;
    for (const side of ['gpu', 'cpu'] as const) if (packs[side].missing?.includes(name)) return otherSide(side);
    const chosen = sideOfOperation(name, pages);
    if (chosen !== null) return chosen;
    const [first] = reads;
    if (first === undefined) return lastSide;
    for (const side of ['gpu', 'cpu'] as const) if (newest.onlyOn(side, first).length > 0) return side;
    return lastSide;
  }

  function run({ visit }: Job, side: Side): void {
    // Nothing is at the address of an empty range.
    const translate = (offset: Offset, sizeBytes: number): Offset => (sizeBytes === 0 ? 0 : arena.locate(offset, side));
    const start = visit({
      read: translate,
      write: translate,
      update: translate,
      updateAll: (offset) => arena.locate(offset, side),
      matrix: (weight) => (weight as SplitMatrix).onSide,
      ints,
      pages: () => {},
    });
    start(side);
  }

  /** Runs a job if its inputs are or can be where it runs; otherwise returns the results that the GPU must bring first. */
  function tryRun(waiting: WaitingJob): readonly ArenaRange[] | null {
    const { job } = waiting;
    let access: Access;
    try {
      access = collect(job);
    } catch (missing) {
      if (!(missing instanceof MissingContents)) throw missing;
      return bring(missing.ranges) ? tryRun(waiting) : missing.ranges;
    }
    const side = (waiting.side ??= sideOf(job.name, access));
    const inputs = access.reads.flatMap((range) => newest.onlyOn(otherSide(side), range));
    if (side === 'cpu') {
      if (!bring(inputs)) return inputs;
    } else if (inputs.length > 0) {
      if (isTouched('cpu', inputs)) complete('cpu');
      // Earlier operations of the GPU may still read the bytes that the copy replaces.
      if (isTouched('gpu', inputs) && !complete('gpu')) return [];
      copy(inputs, 'cpu');
    }
    run(job, side);
    for (const range of access.writes) newest.mark(range, side);
    touched[side].push(...access.reads, ...access.writes);
    lastSide = side;
    return null;
  }

  /** Runs waiting jobs as far as possible; null: none is left. */
  function drain(): readonly ArenaRange[] | null {
    while (queue.length > 0) {
      try {
        const missing = tryRun(queue[0]!);
        if (missing !== null) return missing;
      } catch (error) {
        queue.length = 0;
        throw error;
      }
      queue.shift();
    }
    return null;
  }
  async function fetch(ranges: readonly ArenaRange[]): Promise<void> {
    const onGpu = ranges.map(({ offset, sizeBytes }) => ({ offset: arena.locate(offset, 'gpu'), sizeBytes }));
    try {
      await packs.gpu.sync(onGpu);
    } catch (error) {
      queue.length = 0;
      throw error;
    }
    touched.gpu = [];
    receive(ranges);
  }

  return {
    arena,
    add(job) {
      queue.push({ job, side: null });
      if (queue.length === 1) drain();
    },
    async sync(reads) {
      for (let missing = drain(); missing !== null; missing = drain()) await fetch(missing);
      const wanted = reads?.filter(({ sizeBytes }) => sizeBytes > 0) ?? arena.sharedRanges();
      const results = wanted.flatMap((range) => newest.onlyOn('gpu', range));
      if (results.length > 0 || touched.gpu.length > 0) await fetch(results);
      await packs.cpu.sync();
      touched.cpu = [];
    },
    finish() {
      bring(arena.sharedRanges().flatMap((range) => newest.onlyOn('gpu', range)));
      complete('gpu');
      complete('cpu');
    },
  };
}
