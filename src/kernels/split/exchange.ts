import { assert } from '../../core/errors.ts';
import type { ArenaRange, KernelPack, Offset } from '../contract.ts';
import { overlaps } from '../ranges.ts';
import { type Access, createJobReader, type Job, MissingContents } from './job-reader.ts';
import { createNewestMap, type NewestMap } from './newest-map.ts';
import { otherSide, type Side } from './sides.ts';
import { createSplitArena, type SplitArena } from './split-arena.ts';
import { type Done, planStep, type Run, type StartRun, type StepPlan } from './step-plan.ts';

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
  /** See `KernelPack.replay`. */
  replay(key: string, record: () => void): void;
  /** See `KernelPack.sync`. */
  sync(reads?: readonly ArenaRange[]): Promise<void>;
  /** See `KernelPack.finish`; only if the GPU side computes while the caller waits, too. */
  finish(): void;
}

interface WaitingJob {
  readonly job: Job;
  /** Decided once: results that arrive meanwhile do not change it. */
  side: Side | null;
  /** The step that it belongs to, if that will be repeated. */
  readonly recording: Recording | null;
}

/** A step whose operations are recorded, and run one after the other. */
interface Recording {
  readonly key: string;
  readonly done: Done[];
  numJobs: number;
  /** Whether no more jobs follow. */
  isWhole: boolean;
}

/** Each takes some 40 KB. */
const MOST_PLANS = 64;

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
  const jobs = createJobReader(arena, ints);
  /** Operations and runs of them that wait for results of the GPU, in their order. */
  const queue: (WaitingJob | Run)[] = [];
  /** Steps by key, the most recently used last. */
  const plans = new Map<string, StepPlan>();
  let numPlans = 0;
  let recording: Recording | null = null;
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
  /** All that only the GPU has; there may be thousands of allocations, and few have changed since. */
  const newestOfGpu = (): ArenaRange[] =>
    newest.onlyOn('gpu', { offset: 0, sizeBytes: arena.usedBytes }).flatMap((range) => arena.sharedPartsOf(range));
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

  function ints(offset: Offset, count: number): Int32Array {
    if (count === 0) return new Int32Array(0);
    const range = { offset, sizeBytes: count * 4 };
    const missing = arena.onlySideOf(offset) === null ? newest.onlyOn('gpu', range) : [];
    if (missing.length > 0) throw new MissingContents(missing);
    if (isTouched('cpu', [range])) complete('cpu');
    return packs.cpu.arena.i32(arena.locate(offset, 'cpu'), count);
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

  /** Where a job runs and what it touches, or the contents that the GPU must bring first. */
  function decide(waiting: WaitingJob): Done | MissingContents {
    const { job } = waiting;
    const found = jobs.collect(job);
    if (found instanceof MissingContents) return bring(found.ranges) ? decide(waiting) : found;
    const { reads, writes, tables } = found;
    const side = (waiting.side ??= sideOf(job.name, found));
    const findRanges = (): Access | null => {
      const access = jobs.collect(job);
      return access instanceof MissingContents ? null : access;
    };
    return { side, reads, writes, tables, start: jobs.translate(job, side), findRanges };
  }

  /** Runs a job if its inputs are or can be where it runs; otherwise returns the results that the GPU must bring first. */
  function tryRun(waiting: WaitingJob | Run): readonly ArenaRange[] | null {
    const work = 'job' in waiting ? decide(waiting) : waiting;
    if (work instanceof MissingContents) return work.ranges;
    const { side, reads, writes } = work;
    const inputs = reads.flatMap((range) => newest.onlyOn(otherSide(side), range));
    if (side === 'cpu') {
      if (!bring(inputs)) return inputs;
    } else if (inputs.length > 0) {
      if (isTouched('cpu', inputs)) complete('cpu');
      // Earlier operations of the GPU may still read the bytes that the copy replaces.
      if (isTouched('gpu', inputs) && !complete('gpu')) return [];
      copy(inputs, 'cpu');
    }
    work.start();
    for (const range of writes) newest.mark(range, side);
    touched[side].push(...reads, ...writes);
    lastSide = side;
    if ('job' in waiting && waiting.recording !== null) {
      waiting.recording.done.push(work as Done);
      keepPlan(waiting.recording);
    }
    return null;
  }

  /** Keeps a step once it is recorded and all of it has run. */
  function keepPlan({ key, done, numJobs, isWhole }: Recording): void {
    if (!isWhole || done.length < numJobs) return;
    const number = numPlans++;
    const plan = planStep(done, startRunOf(number));
    if (plan === null) return;
    plans.delete(key);
    plans.set(key, plan);
    if (plans.size > MOST_PLANS) plans.delete(plans.keys().next().value!);
  }
  const startRunOf =
    (number: number): StartRun =>
    (side, index, startAll) => {
      if (packs[side].replay === undefined) startAll();
      else packs[side].replay(`${number} ${index}`, startAll);
    };

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
      if (recording !== null) recording.numJobs++;
      queue.push({ job, side: null, recording });
      if (queue.length === 1) drain();
    },
    replay(key, record) {
      // Operations that wait may change the contents of tables.
      if (queue.length > 0) return record();
      const plan = plans.get(key);
      if (plan?.isValid() === true) {
        plans.delete(key);
        plans.set(key, plan);
        queue.push(...plan.runs);
        drain();
        return;
      }
      const step: Recording = { key, done: [], numJobs: 0, isWhole: false };
      recording = step;
      try {
        record();
      } finally {
        recording = null;
      }
      step.isWhole = true;
      keepPlan(step);
    },
    async sync(reads) {
      for (let missing = drain(); missing !== null; missing = drain()) await fetch(missing);
      const results = reads?.flatMap((range) => newest.onlyOn('gpu', range)) ?? newestOfGpu();
      if (results.length > 0 || touched.gpu.length > 0) await fetch(results);
      await packs.cpu.sync();
      touched.cpu = [];
    },
    finish() {
      bring(newestOfGpu());
      complete('gpu');
      complete('cpu');
    },
  };
}
