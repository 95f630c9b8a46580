import { z } from 'zod';
import { type Operation, operationsOn } from '../../../memory/operations/index.ts';
import { name } from '../../../memory/schemas/primitives.ts';
import type { LearnedVersion } from '../../../learning/versions/version-log.ts';
import type { LearningControl } from './control.ts';

/** One thing an operator does with what is learned. */
export type LearningOperation = Operation<LearningControl>;

export const defineLearning = operationsOn<LearningControl>();

/** Which model; where there is one only it need not be said. */
export const model = name.optional();
export const versionNumber = z.int().min(0).max(1_000_000_000);

/** A version without its weights, and without the requests it learned from: those are counted. */
export function plainVersion({
  version,
  parent,
  createdMs,
  loop,
  isAccepted,
  reason,
  metrics,
  learnedFrom,
}: LearnedVersion) {
  return { version, parent, createdMs, loop, isAccepted, reason, metrics, numLearnedFrom: learnedFrom.length };
}

/** Result of `work` within `waitMs`, else null; the work continues. */
export async function waitFor<T>(work: Promise<T>, waitMs: number): Promise<T | null> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<null>((resolve) => (timer = setTimeout(resolve, waitMs, null)));
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
