import { RuvLLMError } from '../../core/errors.ts';
import type { TrainingExample } from '../lora-training/types.ts';
import type { ExaminedAnswers } from './examined.ts';
import type { LearningModel } from './types.ts';

/** Examples with the hidden states of their answers, as many as there was time for. */
export interface PreparedExamples {
  /** Null: not all of them are ready. */
  readonly examples: readonly TrainingExample[] | null;
  readonly numReady: number;
  /** Computed by this call. */
  readonly numNew: number;
}

/** Examples of the first round, whose time says how many fit into the next one. */
const FIRST_ROUND = 2;
/** Enough for full batches of the engine. */
const MAX_ROUND = 8;

/**
 * Examines answers with the serving engine until `endMs`; the results are kept, so that the next call continues. The engine ends no batch
 * early, so a round has only as many answers as will be done in time.
 */
export async function prepareSamples(
  { examined, now }: { readonly examined: ExaminedAnswers; now(): number },
  { tenant, model, endMs, signal }: { readonly tenant: string; readonly model: LearningModel; readonly endMs: number; readonly signal: AbortSignal | null }, // prettier-ignore
  examples: readonly TrainingExample[],
): Promise<PreparedExamples> {
  const ready = new Map<TrainingExample, TrainingExample>();
  const missing: TrainingExample[] = [];
  for (const example of new Set(examples)) {
    const samples = await examined.stored(tenant, model, example);
    if (samples === null) missing.push(example);
    else ready.set(example, { ...example, samples });
  }
  const numStored = ready.size;
  const examine = async (example: TrainingExample): Promise<void> => {
    try {
      const timeoutMs = Math.max(1, Math.ceil(endMs - now()));
      ready.set(example, { ...example, samples: await examined.of(tenant, model, example, timeoutMs) });
    } catch (error) {
      if (!(error instanceof RuvLLMError) || error.code !== 'deadline_exceeded') throw error;
    }
  };
  let count = FIRST_ROUND;
  while (missing.length > 0 && count > 0 && now() < endMs) {
    if (signal?.aborted) throw new RuvLLMError('aborted', 'learning was stopped');
    const startMs = now();
    const round = missing.splice(0, count);
    await Promise.all(round.map(examine));
    const numLeft = (endMs - now()) / ((now() - startMs) / round.length);
    // Half of them: answers that are late were computed in vain.
    count = numLeft < 1 ? 0 : Math.min(MAX_ROUND, Math.ceil(numLeft / 2));
  }
  const numNew = ready.size - numStored;
  const isWhole = ready.size === new Set(examples).size;
  return { examples: isWhole ? examples.map((one) => ready.get(one)!) : null, numReady: ready.size, numNew };
}
