/** Limits of one run: a part stops at whichever comes first. */
export interface PartOptions {
  readonly seed: number;
  readonly minutes: number;
  /** Rounds, in the unit of the part: kills, corruptions, probes. Default: what the part takes as enough. */
  readonly maxRounds?: number;
  readonly log: (line: string) => void;
}

export interface PartResult {
  /** For the JSON line. */
  readonly figures: Readonly<Record<string, number | string | boolean | null>>;
  /** Broken promises, one sentence each. */
  readonly problems: readonly string[];
  /** The same for promises about time, which a busy machine breaks by itself. */
  readonly slowness?: readonly string[];
}

/** One part of the campaign. */
export interface Part {
  readonly name: string;
  readonly summary: string;
  /** Why it cannot run on this machine; null: it can. */
  whySkipped?(): string | null;
  run(options: PartOptions): Promise<PartResult>;
}

/** Whether another round may start. */
export function createClock(
  { minutes, maxRounds }: PartOptions,
  defaultRounds: number,
): { next(): boolean; readonly rounds: number } {
  const end = performance.now() + minutes * 60_000;
  const limit = maxRounds ?? defaultRounds;
  let rounds = 0;
  return {
    get rounds() {
      return rounds;
    },
    next: () => performance.now() < end && rounds < limit && ++rounds > 0,
  };
}

export const percentileOf = (values: readonly number[], share: number): number | null => {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted.length === 0
    ? null
    : Math.round(sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))]!);
};

/** A few sentences of each sort: those that differ only in their numbers and ids are one sort. */
export function shorten(messages: readonly string[], numOfSort = 4): string[] {
  const sorts = new Map<string, string[]>();
  for (const message of messages) {
    const sort = message.replaceAll(/[0-9a-f-]*\d[0-9a-f-]*/g, '#');
    sorts.set(sort, [...(sorts.get(sort) ?? []), message]);
  }
  return [...sorts.values()].flatMap((all) =>
    all.length <= numOfSort ? all : [...all.slice(0, numOfSort), `and ${all.length - numOfSort} more like the last`],
  );
}
