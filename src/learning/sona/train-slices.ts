import { RuvLLMError } from '../../core/errors.ts';
import type { Checkpoints } from './checkpoint.ts';
import type { LearningWork, TrainJob } from './types.ts';

export interface SlicedRun {
  readonly tenant: string;
  readonly line: string;
  /** Hash of examples, start and options: a checkpoint of another key is ignored. */
  readonly runKey: string;
  readonly job: Omit<TrainJob, 'state' | 'timeLimitMs'>;
  /** Longest time between checkpoints. */
  readonly sliceMs: number;
  /** When training must end, given the time of a gradient; null: not measured yet. */
  endMs(gradientMs: number | null): number;
  readonly limitMs: number;
  /** Aborting it must also cancel the work. */
  readonly signal: AbortSignal | null;
}

export interface SliceContext {
  readonly work: LearningWork;
  readonly checkpoints: Checkpoints;
  now(): number;
}

/** Default of `trainLora`. */
const BATCH_SIZE = 4;

/** Trains with a checkpoint after each slice: a stopped or crashed run continues from the last one. */
export async function trainInSlices(
  { work, checkpoints, now }: SliceContext,
  { tenant, line, runKey, job, sliceMs, endMs, limitMs, signal }: SlicedRun,
): Promise<Float32Array> {
  if (signal?.aborted) throw new RuvLLMError('aborted', 'learning was stopped before its first step');
  let state = await checkpoints.get(tenant, line, runKey);
  let gradientMs: number | null = null;
  // A step longer than a slice would start over each time: the rest becomes one slice.
  let isStuck = false;
  for (;;) {
    const startMs = now();
    const restMs = endMs(gradientMs) - startMs;
    const timeLimitMs = Math.max(1, isStuck ? restMs : Math.min(sliceMs, restMs));
    const outcome = await work.train({ ...job, state, timeLimitMs });
    const numNew = outcome.state.numSteps - (state?.numSteps ?? 0);
    isStuck = numNew === 0;
    if (numNew > 0) gradientMs = (now() - startMs) / (numNew * BATCH_SIZE);
    const isLate = now() >= endMs(gradientMs);
    const isEnough = outcome.isDone || (isLate && outcome.state.numSteps > 0);
    // A stopped run must not become a version, even if it is done.
    if (isEnough && !signal?.aborted) return outcome.parameters;
    state = outcome.state;
    await checkpoints.put(tenant, line, runKey, state);
    if (signal?.aborted)
      throw new RuvLLMError('aborted', `learning stopped after ${state.numSteps} steps; it goes on from there`);
    if (isLate) throw tooShort(limitMs, endMs(gradientMs) - startMs);
  }
}

function tooShort(limitMs: number, restMs: number): RuvLLMError {
  const left = Math.max(0, Math.round(restMs));
  const message = `no step of training fits into ${limitMs} ms, of which judging leaves ${left} ms`;
  return new RuvLLMError('deadline_exceeded', message, { data: { limitMs, leftMs: left } });
}
