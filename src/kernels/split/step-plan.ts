import type { ArenaRange } from '../contract.ts';
import { isSameRanges, mergeRanges, overlaps, subtractRanges } from '../ranges.ts';
import type { Side } from './sides.ts';

/** Operations of one side that follow each other. */
export interface Run {
  readonly side: Side;
  /** Shared memory that must be there before it, and that it changes. */
  readonly reads: readonly ArenaRange[];
  readonly writes: readonly ArenaRange[];
  start(): void;
}

/** An operation of a step, as it ran. */
export interface Done extends Run {
  /** Tables whose contents its ranges depend on. */
  readonly tables: readonly ArenaRange[];
  /** The ranges for the present contents of its tables; null: only the GPU has these contents. */
  findRanges(): Pick<Run, 'reads' | 'writes'> | null;
}

/** A step that can run again. */
export interface StepPlan {
  readonly runs: readonly Run[];
  /** Whether the contents of tables give the ranges that the runs were made for. */
  isValid(): boolean;
}

/** Runs the operations of a side together; only packs on a device can repeat them faster than they are recorded. */
export type StartRun = (side: Side, index: number, startAll: () => void) => void;

/** Null: an operation writes a table, so its contents are not known before the step. */
export function planStep(done: readonly Done[], startRun: StartRun): StepPlan | null {
  const written = done.flatMap(({ writes }) => writes);
  const dependent = done.filter(({ tables }) => tables.length > 0);
  if (dependent.some(({ tables }) => tables.some((table) => written.some((range) => overlaps(table, range)))))
    return null;
  const groups: Done[][] = [];
  for (const operation of done) {
    const group = groups.at(-1);
    if (group?.[0]!.side === operation.side) group.push(operation);
    else groups.push([operation]);
  }
  return {
    runs: groups.map((group, index) => joinOperations(group, index, startRun)),
    isValid: () =>
      dependent.every(({ reads, writes, findRanges }) => {
        const now = findRanges();
        return now !== null && isSameRanges(now.reads, reads) && isSameRanges(now.writes, writes);
      }),
  };
}

function joinOperations(group: readonly Done[], index: number, startRun: StartRun): Run {
  const reads: ArenaRange[] = [];
  let writes: ArenaRange[] = [];
  for (const operation of group) {
    reads.push(...operation.reads.flatMap((range) => subtractRanges(range, writes)));
    writes = mergeRanges([...writes, ...operation.writes]);
  }
  const { side } = group[0]!;
  const startAll = (): void => group.forEach(({ start }) => start());
  return { side, reads: mergeRanges(reads), writes, start: () => startRun(side, index, startAll) };
}
