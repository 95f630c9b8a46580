import { z } from 'zod';
import type { FeedbackOutcome } from '../../../memory/schemas/trajectory.ts';
import type { InstantReport } from '../../../learning/sona/sona.ts';
import type { Feedback } from '../../../learning/trajectories/feedback.ts';
import { text, unit, uuid } from '../../../memory/schemas/primitives.ts';
import { MAX_TRAJECTORY_TEXT } from '../../../memory/schemas/text-lengths.ts';
import type { FeedbackLog, FeedbackReceipt, FeedbackState } from '../feedback-log.ts';
import { defineLearning, waitFor } from './define.ts';

/** The outcome of feedback. */
export interface FeedbackReport extends Omit<FeedbackReceipt, 'learned' | 'outcome'> {
  readonly learned: LearnedNow;
  readonly outcome: ReportedOutcome;
}

/** `pending`: the instant learning loop is still running. */
export type ReportedOutcome = Omit<FeedbackOutcome, 'state'> & { readonly state: FeedbackOutcome['state'] | 'pending' };

export interface LearnedNow {
  /** `pending`: the loop is still running; `nothing`: nothing to learn at once, later loops may learn from it. */
  readonly state: 'applied' | 'refused' | 'nothing' | 'pending';
  readonly reason: string | null;
  readonly lossBefore: number | null;
  readonly lossAfter: number | null;
}

const PENDING: LearnedNow = { state: 'pending', reason: null, lossBefore: null, lossAfter: null };
const PENDING_OUTCOME: ReportedOutcome = {
  state: 'pending',
  reason: 'learning is in progress',
  lossBefore: null,
  lossAfter: null,
  supersedes: [],
};

/** Stores feedback, and waits up to `waitMs` for the instant learning loop. */
export async function giveFeedback(
  log: Pick<FeedbackLog, 'feedback'>,
  tenant: string,
  feedback: Feedback,
  waitMs: number,
): Promise<FeedbackReport> {
  const receipt = await log.feedback(tenant, feedback);
  const outcome = await waitFor(receipt.outcome, waitMs);
  const learned = outcome === null ? PENDING : toLearned(await receipt.learned);
  return { ...receipt, learned, outcome: outcome ?? PENDING_OUTCOME };
}

/** The feedback on a request as stored, also after a restart. */
export async function readReceipt(
  log: Pick<FeedbackLog, 'receipt'>,
  tenant: string,
  requestId: string,
): Promise<Omit<FeedbackState, 'outcome' | 'isPending'> & { readonly outcome: ReportedOutcome | null }> {
  const { isPending, ...rated } = await log.receipt(tenant, requestId);
  return isPending ? { ...rated, outcome: PENDING_OUTCOME } : rated;
}

function toLearned({ isApplied, reason, lossBefore, lossAfter }: InstantReport): LearnedNow {
  const state = isApplied ? 'applied' : reason.startsWith('refused') ? 'refused' : 'nothing';
  return { state, reason, lossBefore, lossAfter };
}

export const feedbackOperation = defineLearning({
  name: 'feedback',
  summary: 'Rates or corrects an answer; the model learns from it.',
  input: z.strictObject({
    requestId: text(256, 1),
    score: unit.nullable().default(null),
    thumbs: z.enum(['up', 'down']).nullable().default(null),
    correction: text(MAX_TRAJECTORY_TEXT, 1).nullable().default(null),
    comment: text(4096, 1).nullable().default(null),
    usedSources: z.array(uuid).max(64).nullable().default(null),
    source: z.enum(['api', 'cli', 'ui']).default('api'),
    target: z.enum(['answer', 'route']).default('answer'),
    waitMs: z.int().min(0).max(60_000).default(100),
  }),
  run: ({ learning }, tenant, { waitMs, ...feedback }) => giveFeedback(learning, tenant, feedback, waitMs),
});

export const receiptOperation = defineLearning({
  name: 'learn.receipt',
  summary: 'What became of the feedback on a request: remembered, learned, refused and why.',
  input: z.strictObject({ requestId: text(256, 1) }),
  run: ({ learning }, tenant, { requestId }) => readReceipt(learning, tenant, requestId),
});
