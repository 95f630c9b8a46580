import { RuvLLMError } from '../core/errors.ts';
import type { ModelSpec } from './protocol.ts';
import { type PackedKvPrecision, PAGE_TOKENS } from '../kernels/contract.ts';
import { kvPageBytes, numPagesWithin } from '../models/index.ts';
import type { DecoderShape } from '../models/types.ts';

/** The default must be small: pages take memory at their first use and keep it. */
const DEFAULT_BUDGET_BYTES = 512 * 2 ** 20;
const DEFAULT_TOKENS = 65_536;
/** A model with a short context can still batch several sequences for little memory. */
const LEAST_TOKENS = 4096;
/** A full batch of whole contexts, and three times as many tokens of cached prefixes. */
const MAX_FULL_BATCHES = 4;

export type PageWishes = Pick<
  ModelSpec,
  | 'kvCacheTokens'
  | 'memoryBudgetBytes'
  | 'maxContext'
  | 'isContextGiven'
  | 'maxSequences'
  | 'maxBatchTokens'
  | 'kvPrecision'
>;

export interface PagePlan {
  /** Full-precision pages. */
  readonly numPages: number;
  /** Fewer pages, used if the number is a default and memory is short. */
  readonly leastPages: number;
}

/** Plans the pages of a model; `out_of_memory` if the budget cannot hold one sequence. */
export function planPages(wishes: PageWishes, shape: DecoderShape, packed: PackedKvPrecision | null): PagePlan {
  const { kvCacheTokens, memoryBudgetBytes, maxContext, maxSequences, kvPrecision } = wishes;
  const numPagesFor = (numTokens: number): number => Math.ceil(numTokens / PAGE_TOKENS);
  if (!shape.isCausal && kvCacheTokens === null && memoryBudgetBytes === null) {
    // No cache between steps: the tokens of one step, plus a started and a spare page per sequence.
    const numPages = numPagesFor(wishes.maxBatchTokens) + 2 * maxSequences;
    return { numPages, leastPages: numPages };
  }
  if (memoryBudgetBytes !== null) {
    const wanted = kvCacheTokens === null ? Infinity : numPagesFor(kvCacheTokens);
    const numPages = Math.min(wanted, numPagesWithin(memoryBudgetBytes, shape, kvPrecision));
    checkBudget(wishes, shape, packed);
    return { numPages, leastPages: numPages };
  }
  if (kvCacheTokens !== null) return { numPages: numPagesFor(kvCacheTokens), leastPages: numPagesFor(kvCacheTokens) };
  const leastPages = numPagesFor(Math.max(maxContext, Math.min(maxContext * maxSequences, LEAST_TOKENS)));
  const usableTokens = Math.max(MAX_FULL_BATCHES * maxContext * maxSequences, LEAST_TOKENS);
  const byDefault = Math.min(
    numPagesWithin(DEFAULT_BUDGET_BYTES, shape, kvPrecision),
    numPagesFor(Math.min(DEFAULT_TOKENS, usableTokens)),
  );
  return { numPages: Math.max(leastPages, byDefault), leastPages };
}

/** At least one page and the requested context, packed if pages are packed. */
function checkBudget(wishes: PageWishes, shape: DecoderShape, packed: PackedKvPrecision | null): void {
  const { memoryBudgetBytes: budgetBytes, isContextGiven, maxContext, kvPrecision } = wishes;
  const pageBytes = kvPageBytes(shape, kvPrecision);
  const smallest = Math.min(pageBytes, packed === null ? Infinity : kvPageBytes(shape, packed));
  const numTokens = isContextGiven ? maxContext : PAGE_TOKENS;
  const neededBytes = Math.max(pageBytes, Math.ceil(numTokens / PAGE_TOKENS) * smallest);
  if (budgetBytes! >= neededBytes) return;
  throw new RuvLLMError(
    'out_of_memory',
    `a memory budget of ${budgetBytes} bytes is too small: one sequence of ${numTokens} tokens takes ${neededBytes} bytes of KV pages`,
    { data: { budgetBytes, neededBytes, numTokens } },
  );
}
