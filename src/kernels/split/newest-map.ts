import type { ArenaRange } from '../contract.ts';
import type { Side } from './sides.ts';

/** The side with the newest bytes; `both`: they are equal. */
export type Holder = Side | 'both';

/** Which side has the newest bytes of each range of an arena; at first, both have zeros. */
export interface NewestMap {
  mark(range: ArenaRange, holder: Holder): void;
  /** The parts of a range whose newest bytes only this side has. */
  onlyOn(side: Side, range: ArenaRange): ArenaRange[];
}

export function createNewestMap(): NewestMap {
  // Run i has the bytes from starts[i] up to starts[i + 1]; neighbours differ.
  const starts = [0];
  const holders: Holder[] = ['both'];

  function runAt(offset: number): number {
    let [low, high] = [0, starts.length - 1];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (starts[middle]! <= offset) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  return {
    mark({ offset, sizeBytes }, holder) {
      if (sizeBytes === 0) return;
      const end = offset + sizeBytes;
      const [first, last] = [runAt(offset), runAt(end - 1)];
      const before = starts[first]! < offset ? holders[first]! : (holders[first - 1] ?? null);
      const after = (starts[last + 1] ?? Infinity) > end ? holders[last]! : (holders[last + 1] ?? null);
      const runs: [number, Holder][] = [];
      if (starts[first]! < offset) runs.push([starts[first]!, holders[first]!]);
      if (before !== holder) runs.push([offset, holder]);
      // A run after the range continues, unless the marked one reaches into it.
      const isCut = (starts[last + 1] ?? Infinity) > end;
      if (isCut && after !== holder) runs.push([end, after!]);
      const joinsNext = !isCut && after === holder;
      const count = last - first + 1 + (joinsNext ? 1 : 0);
      starts.splice(first, count, ...runs.map(([start]) => start));
      holders.splice(first, count, ...runs.map(([, run]) => run));
    },
    onlyOn(side, { offset, sizeBytes }) {
      const end = offset + sizeBytes;
      const parts: ArenaRange[] = [];
      if (sizeBytes === 0) return parts;
      for (let i = runAt(offset); i < starts.length && starts[i]! < end; i++) {
        if (holders[i] !== side) continue;
        const from = Math.max(offset, starts[i]!);
        parts.push({ offset: from, sizeBytes: Math.min(end, starts[i + 1] ?? Infinity) - from });
      }
      return parts;
    },
  };
}
