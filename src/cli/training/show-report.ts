import type { DataProvenance } from '../../learning/training/data/data-set.ts';
import type { HeldOutReport } from '../../learning/training/report.ts';
import type { CommandContext } from '../command.ts';

export interface ShownReport {
  readonly data: DataProvenance;
  readonly numItems: Readonly<Record<string, number>>;
  readonly numSteps: number;
  readonly bestStep: number;
  readonly stoppedBy: 'end' | 'early-stop';
  readonly heldOut: HeldOutReport;
}

const duplicatesText = ({ numDuplicates, numNearDuplicates }: DataProvenance): string =>
  numDuplicates + numNearDuplicates === 0
    ? ''
    : `; ${numDuplicates} equal and ${numNearDuplicates} similar lines were removed`;

/** Shows the figures of a run on stderr, beside the adapter's. */
export function noteReport({ output }: CommandContext, report: ShownReport): void {
  const { data, numItems, numSteps, bestStep, stoppedBy, heldOut } = report;
  const kept = bestStep === numSteps ? '' : `, those of step ${bestStep} are kept`;
  const end = stoppedBy === 'early-stop' ? ' (stopped early)' : '';
  output.note(
    `trained on ${numItems['train']} examples of ${data.numLines} lines in ${numSteps} steps${end}${kept}${duplicatesText(data)}`,
  );
  const { before, after, change, low, high, numPrompts, count, measure, isSurelyBetter } = heldOut;
  const interval = low === null || high === null ? 'no interval' : `95 % ${low.toFixed(4)} to ${high.toFixed(4)}`;
  output.note(
    `held out: ${before.toFixed(4)} → ${after.toFixed(4)} (${measure}); change ${change.toFixed(4)} (${interval}; ${count} examples, ${numPrompts} prompts)`,
  );
  if (isSurelyBetter) return;
  output.note('it is not sure that the held-out part improved; use more lines, or fewer --epochs');
}
