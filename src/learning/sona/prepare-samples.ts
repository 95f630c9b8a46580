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

/** Enough for full batches of the engine. */
const CONCURRENCY = 8;

/** Examines answers with the serving engine until `endMs`; the results are kept, so that the next call continues. */
export async function prepareSamples(
  { examined, now }: { readonly examined: ExaminedAnswers; now(): number },
  { tenant, model, endMs, signal }: { readonly tenant: string; readonly model: LearningModel; readonly endMs: number; readonly signal: AbortSignal | null }, // prettier-ignore
  examples: readonly TrainingExample[],
): Promise<PreparedExamples> {
  const ready = new Map<TrainingExample, TrainingExample>();
  const waiting = [...examples];
  let numNew = 0;
  const work = async (): Promise<void> => {
    for (let example = waiting.shift(); example !== undefined; example = waiting.shift()) {
      if (signal?.aborted) throw new RuvLLMError('aborted', 'learning was stopped');
      const stored = await examined.stored(tenant, model, example);
      if (stored !== null) ready.set(example, { ...example, samples: stored });
      if (stored !== null || now() >= endMs) continue;
      try {
        const timeoutMs = Math.max(1, Math.ceil(endMs - now()));
        ready.set(example, { ...example, samples: await examined.of(tenant, model, example, timeoutMs) });
        numNew++;
      } catch (error) {
        if (!(error instanceof RuvLLMError) || error.code !== 'deadline_exceeded') throw error;
      }
    }
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, work));
  const isWhole = ready.size === new Set(examples).size;
  return { examples: isWhole ? examples.map((one) => ready.get(one)!) : null, numReady: ready.size, numNew };
}
