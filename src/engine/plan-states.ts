import { RuvLLMError } from '../core/errors.ts';
import type { ModelSpec } from './protocol.ts';

/** Share of the memory budget for states of recurrent layers, and the most that checkpoints can use. */
const BUDGET_SHARE = 1 / 4;
const MAX_CHECKPOINTS = 256;
/** Of models without a configured budget. */
const DEFAULT_BUDGET_BYTES = 512 * 2 ** 20;

/** Number of states: one per running sequence, and checkpoints of cached pages. 0 for a model without recurrent layers. */
export function planStates(
  { maxSequences, memoryBudgetBytes }: Pick<ModelSpec, 'maxSequences' | 'memoryBudgetBytes'>,
  stateBytes: number,
): number {
  if (stateBytes === 0) return 0;
  const room = Math.floor(((memoryBudgetBytes ?? DEFAULT_BUDGET_BYTES) * BUDGET_SHARE) / stateBytes);
  const leastStates = maxSequences + 1;
  // A configured budget holds; the default grows with the model.
  if (memoryBudgetBytes !== null && leastStates * stateBytes >= memoryBudgetBytes) {
    const neededBytes = leastStates * stateBytes;
    throw new RuvLLMError(
      'out_of_memory',
      `a memory budget of ${memoryBudgetBytes} bytes is too small: ${maxSequences} sequences take ${neededBytes} bytes for the states of recurrent layers, and KV pages`,
      { data: { budgetBytes: memoryBudgetBytes, neededBytes, maxSequences } },
    );
  }
  return Math.max(leastStates, Math.min(maxSequences + MAX_CHECKPOINTS, room));
}
