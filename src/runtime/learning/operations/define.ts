import { z } from 'zod';
import { type Operation, operationsOn } from '../../../memory/operations/index.ts';
import { name } from '../../../memory/schemas/primitives.ts';
import type { LearnedVersion } from '../../../learning/versions/version-log.ts';
import type { LearningControl } from './control.ts';
import { LEARNING_SCOPES } from './operation-names.ts';
import { LEARNED } from './run-parts.ts';

/** An operation on learning. */
export type LearningOperation = Operation<LearningControl>;

export const defineLearning = operationsOn<LearningControl>()(LEARNING_SCOPES);

/** May be omitted if there is only one model. */
export const model = name.optional();
export const learned = z.enum(LEARNED).default('model');
export const versionNumber = z.int().min(0).max(1_000_000_000);

/** A version without weights; the requests it learned from are only counted. */
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

/** The result of `work`, or null if `waitMs` pass first; the work continues. */
export async function waitFor<T>(work: Promise<T>, waitMs: number): Promise<T | null> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<null>((resolve) => (timer = setTimeout(resolve, waitMs, null)));
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
