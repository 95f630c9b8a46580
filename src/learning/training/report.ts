import { clusteredChange } from '../gate/clustered.ts';

/** Losses of the held-out part before and after training, with the 95 % interval of the change over prompts. */
export interface HeldOutReport {
  readonly measure: string;
  readonly count: number;
  /** Prompts; the interval counts them, not items. */
  readonly numPrompts: number;
  readonly before: number;
  readonly after: number;
  readonly change: number;
  /** Null with fewer than two prompts: one says nothing about others. */
  readonly low: number | null;
  readonly high: number | null;
  /** Whether the whole interval is below zero. */
  readonly isSurelyBetter: boolean;
}

const meanOf = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length;

export function reportHeldOut(
  measure: string,
  before: readonly number[],
  after: readonly number[],
  groups: readonly string[],
): HeldOutReport {
  const { mean, low, high, count, numGroups } = clusteredChange(before, after, groups);
  const finite = (value: number): number | null => (Number.isFinite(value) ? value : null);
  return {
    measure,
    count,
    numPrompts: numGroups,
    before: meanOf(before),
    after: meanOf(after),
    change: mean,
    low: finite(low),
    high: finite(high),
    isSurelyBetter: high < 0,
  };
}
