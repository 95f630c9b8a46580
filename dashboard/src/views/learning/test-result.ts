import type { Version } from '../../api/learning.ts';
import { formatShare } from '../../format/numbers.ts';
import { messages } from '../../messages/index.ts';

const text = messages.learning.versions;

/** The gate's measurements of a version in words: how much better it is, and how sure that is. */
export function describeTest({ isAccepted, metrics }: Pick<Version, 'isAccepted' | 'metrics'>): string {
  const { held_out_before: before, held_out_mean: mean, held_out_high: high, held_out_count: count } = metrics;
  if (!isAccepted) return count !== undefined && high !== undefined && high >= 0 ? text.notSure(count) : text.notUsed;
  if (before === undefined || mean === undefined || high === undefined || count === undefined || before <= 0) return '';
  // The means are changes of the loss: negative ones are improvements.
  return [text.better(formatShare(-mean / before), count), text.atLeast(formatShare(-high / before))].join(' ');
}
