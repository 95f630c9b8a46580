import { join } from 'node:path';
import type { Memory } from '../memory/memory.ts';
import { type FeedbackRecords, openFeedbackRecords } from '../node/server/feedback-records.ts';
import { dataFolder } from '../platform/node/files/paths.ts';
import type { Learning } from '../runtime/learning/learning.ts';

/** Feedback records of this user. */
export const openFeedbackFolder = (): FeedbackRecords => openFeedbackRecords(join(dataFolder(), 'feedback'));

/** Deletes feedback together with its tenant or request. */
export function forgetFeedbackWith(
  feedback: FeedbackRecords,
  memory: Pick<Memory, 'beforeErase'> | null,
  learning: Pick<Learning, 'beforeForget'> | null,
): void {
  memory?.beforeErase(async (tenant) => feedback.eraseTenant(tenant));
  learning?.beforeForget(async (tenant, requestIds) => feedback.forget(tenant, requestIds));
}
