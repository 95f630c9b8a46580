import type { ShadowResult } from '../gate/gate.ts';
import type { TrainingExample } from '../lora-training/types.ts';
import { isBroken } from './judges.ts';
import type { LearningWork, TrainJob } from './types.ts';

const NUM_FOLDS = 4;

const promptOf = ({ tokenIds, numPromptTokens }: TrainingExample): string =>
  Array.from(tokenIds).slice(0, numPromptTokens).join();

export interface CrossValidation {
  /** The job of the version. */
  readonly job: Omit<TrainJob, 'state' | 'timeLimitMs'>;
  /** The share of the way to the trained parameters that the version goes. */
  readonly share: number;
  /** Examples that the parameters at the start have not seen. */
  readonly fresh: readonly TrainingExample[];
  readonly endMs: number;
  now(): number;
}

/** Losses of fresh training examples, each with parameters trained without it; null: there is not enough time, or a training diverges. */
export async function crossValidate(
  work: LearningWork,
  { job, share, fresh, endMs, now }: CrossValidation,
): Promise<ShadowResult | null> {
  const { plan, parameters: start } = job;
  const folds = new Map<TrainingExample, number>();
  const groups = new Map<string, number>();
  const isFresh = new Set(fresh);
  const seenPrompts = new Set(job.train.filter((example) => !isFresh.has(example)).map(promptOf));
  for (const example of fresh) {
    const prompt = promptOf(example);
    if (seenPrompts.has(prompt)) continue;
    // Copies of a question stay together: its answer would be known from the other folds.
    const group = groups.get(prompt) ?? groups.size;
    groups.set(prompt, group);
    folds.set(example, group % NUM_FOLDS);
  }
  const before: number[] = [];
  const after: number[] = [];
  for (let fold = 0; fold < Math.min(NUM_FOLDS, groups.size); fold++) {
    const left = fresh.filter((example) => folds.get(example) === fold);
    const train = job.train.filter((example) => folds.get(example) !== fold);
    if (train.length === 0 || now() >= endMs) return null;
    try {
      const outcome = await work.train({ ...job, train, state: null, timeLimitMs: endMs - now() });
      if (!outcome.isDone) return null;
      const trained = share === 1 ? outcome.parameters : await work.partOf(plan, start, outcome.parameters, share);
      before.push(...(await work.losses(plan, left, start, null)).losses);
      after.push(...(await work.losses(plan, left, trained, null)).losses);
    } catch (error) {
      if (!isBroken(error)) throw error;
      return null;
    }
  }
  return { before, after };
}
