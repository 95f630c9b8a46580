import type { StepBatch, StepSequence } from '../models/types.ts';
import type { Sequence } from './sequence.ts';
import type { Schedule } from './types.ts';

/** The scheduled rows as the model wants them: one flat row per token, page tables beside, and as many best logits as the most demanding sampler wants. */
export function buildBatch(schedule: Schedule, sequences: ReadonlyMap<number, Sequence>, maxTop: number): StepBatch {
  const numRows = schedule.rows.reduce((sum, rows) => sum + rows.numRows, 0);
  const tokenIds = new Int32Array(numRows);
  const positions = new Int32Array(numRows);
  const slots = new Int32Array(numRows);
  const logitRows: number[] = [];
  const hiddenRows: number[] = [];
  const stepSequences: StepSequence[] = [];
  let row = 0;
  let numTop = 0;
  for (const scheduled of schedule.rows) {
    const sequence = sequences.get(scheduled.id)!;
    stepSequences.push({
      firstRow: row,
      numRows: scheduled.numRows,
      contextTokens: scheduled.start + scheduled.numRows,
      pageIds: sequence.pages.table(),
    });
    for (let position = scheduled.start; position < scheduled.start + scheduled.numRows; position++, row++) {
      tokenIds[row] = sequence.tokenIds[position]!;
      positions[row] = position;
      slots[row] = sequence.pages.slotOf(position);
    }
    const { first, numRows: numHidden } = scheduled.hidden ?? { first: 0, numRows: 0 };
    const firstHidden = row - scheduled.numRows + first - scheduled.start;
    for (let i = 0; i < numHidden; i++) hiddenRows.push(firstHidden + i);
    if (!scheduled.isCaughtUp) continue;
    logitRows.push(row - 1);
    numTop = Math.max(numTop, Math.min(sequence.request.sampler.numCandidates ?? 0, maxTop));
  }
  return { tokenIds, positions, slots, sequences: stepSequences, logitRows, hiddenRows, numTop };
}
