import { createRandom } from '../../core/random.ts';
import { type PairedChange, studentPoint } from './paired.ts';

/** A paired change whose interval counts groups: requests of one conversation are not independent. */
export interface ClusteredChange extends PairedChange {
  readonly numGroups: number;
}

const NUM_RESAMPLES = 1000;
/** On each side. */
const TAIL = 0.025;
/** Fixed: the same pairs give the same interval. */
const SEED = 1;

interface Group {
  sum: number;
  count: number;
}

/**
 * The mean of after − before over all pairs with a 95 % interval over groups: the wider one of a bootstrap over groups and of Student's t
 * with the group-robust variance, because with ten groups the bootstrap alone is too narrow.
 */
export function clusteredChange(
  before: readonly number[],
  after: readonly number[],
  groups: readonly string[],
): ClusteredChange {
  const byGroup = new Map<string, Group>();
  groups.forEach((name, i) => {
    const group = byGroup.get(name) ?? { sum: 0, count: 0 };
    group.sum += after[i]! - before[i]!;
    group.count++;
    byGroup.set(name, group);
  });
  const all = [...byGroup.values()];
  const [count, numGroups] = [groups.length, all.length];
  const mean = count === 0 ? 0 : total(all, 'sum') / count;
  if (numGroups < 2) return { count, numGroups, mean, low: -Infinity, high: Infinity };
  const squares = all.reduce((sum, group) => sum + (group.sum - group.count * mean) ** 2, 0);
  const error = Math.sqrt((squares * numGroups) / (numGroups - 1)) / count;
  const half = studentPoint(numGroups - 1) * error;
  const drawn = resample(all);
  const cut = Math.floor(TAIL * NUM_RESAMPLES);
  return {
    count,
    numGroups,
    mean,
    low: Math.min(mean - half, drawn[cut]!),
    high: Math.max(mean + half, drawn[NUM_RESAMPLES - 1 - cut]!),
  };
}

/** Means of resampled groups in ascending order. */
function resample(groups: readonly Group[]): Float64Array {
  const random = createRandom(SEED);
  return Float64Array.from({ length: NUM_RESAMPLES }, () => {
    let [sum, count] = [0, 0];
    for (let i = 0; i < groups.length; i++) {
      const group = groups[Math.floor(random.next() * groups.length)]!;
      sum += group.sum;
      count += group.count;
    }
    return sum / count;
  }).sort();
}

const total = (groups: readonly Group[], of: keyof Group): number => groups.reduce((sum, group) => sum + group[of], 0);
