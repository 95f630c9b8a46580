import { z } from 'zod';
import type { InstantReport } from '../../../learning/sona/sona.ts';
import { refuseInput } from '../../../memory/operations/index.ts';
import { text, unit, uuid } from '../../../memory/schemas/primitives.ts';
import { MAX_TRAJECTORY_TEXT } from '../../../memory/schemas/text-lengths.ts';
import type { FeedbackReceipt, Learning } from '../learning.ts';
import { defineLearning, waitFor } from './define.ts';

/** Answers carry the id of their request with the prefix of their format; both forms are understood. */
const PREFIX = /^(?:chatcmpl|cmpl|resp|msg)[-_]/;
export const plainRequestId = (id: string): string => id.replace(PREFIX, '');

/** Feedback on an answer, as clients send it. */
export interface Judgement {
  readonly requestId: string;
  readonly score: number | null;
  readonly thumbs: 'up' | 'down' | null;
  readonly correction: string | null;
  readonly comment: string | null;
  /** Ids of the sources that it used, of those that were shown. Default: nothing is said of them. */
  readonly usedSources?: readonly string[] | null;
  readonly source: 'api' | 'cli' | 'ui';
}

/** Effect of the feedback. */
export interface JudgementReport extends Pick<FeedbackReceipt, 'requestId' | 'verdict' | 'quality'> {
  readonly learned: LearnedNow;
}

export interface LearnedNow {
  /** `pending`: it is not known yet; `nothing`: there was nothing to learn at once, the loops may. */
  readonly state: 'applied' | 'refused' | 'nothing' | 'pending';
  readonly reason: string | null;
  readonly lossBefore: number | null;
  readonly lossAfter: number | null;
}

const THUMBS = { up: 1, down: 0 } as const;
const PENDING: LearnedNow = { state: 'pending', reason: null, lossBefore: null, lossAfter: null };

/** Both words as one; `invalid_option` where they say different things. */
export function scoreOf({ score, thumbs }: Pick<Judgement, 'score' | 'thumbs'>): number | null {
  if (thumbs === null) return score;
  if (score === null || score === THUMBS[thumbs]) return THUMBS[thumbs];
  throw refuseInput(`a score of ${score} and thumbs ${thumbs} say different things: one of them`, 'thumbs');
}

/** Hands a judgement to what learns, and waits a little for what comes of it. */
export async function giveFeedback(
  learning: Pick<Learning, 'feedback'>,
  tenant: string,
  { requestId, score, thumbs, correction, comment, source, usedSources = null }: Judgement,
  waitMs: number,
): Promise<JudgementReport> {
  const given = { source, score: scoreOf({ score, thumbs }), correction, comment, usedSources };
  const receipt = await learning.feedback(tenant, plainRequestId(requestId), given);
  const { verdict, quality } = receipt;
  const report = await waitFor(receipt.learned, waitMs);
  return { requestId: receipt.requestId, verdict, quality, learned: report === null ? PENDING : toLearned(report) };
}

function toLearned({ isApplied, reason, lossBefore, lossAfter }: InstantReport): LearnedNow {
  const state = isApplied ? 'applied' : reason.startsWith('refused') ? 'refused' : 'nothing';
  return { state, reason, lossBefore, lossAfter };
}

export const feedbackOperation = defineLearning({
  name: 'feedback',
  summary: 'Says how good an answer was, or what it should have been; the model learns from it.',
  scope: 'write',
  input: z.strictObject({
    requestId: text(256, 1),
    score: unit.nullable().default(null),
    thumbs: z.enum(['up', 'down']).nullable().default(null),
    correction: text(MAX_TRAJECTORY_TEXT, 1).nullable().default(null),
    comment: text(4096, 1).nullable().default(null),
    usedSources: z.array(uuid).max(64).nullable().default(null),
    source: z.enum(['api', 'cli', 'ui']).default('api'),
    waitMs: z.int().min(0).max(60_000).default(100),
  }),
  run: ({ learning }, tenant, { waitMs, ...judgement }) => giveFeedback(learning, tenant, judgement, waitMs),
});
