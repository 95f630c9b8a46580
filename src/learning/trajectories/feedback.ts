import { RuvLLMError } from '../../core/errors.ts';
import type { FeedbackEntry } from '../../memory/schemas/trajectory.ts';

/** Feedback on an answer: at least one part besides the request. A missing part, or null, says nothing. */
export interface Feedback {
  /** As in the answer; the prefix of its format is ignored. */
  readonly requestId: string;
  /** Default `api`. */
  readonly source?: FeedbackEntry['source'];
  /** `route` rates the router's choice of the model: no model learns from it. Default `answer`. */
  readonly target?: 'answer' | 'route';
  /** 0 (useless) to 1 (perfect). */
  readonly score?: number | null;
  /** The same as a score of 1 or 0. */
  readonly thumbs?: 'up' | 'down' | null;
  /** The right answer. Without a score, the answer counts as wrong. */
  readonly correction?: string | null;
  /** Stored, not learned from. */
  readonly comment?: string | null;
  /** Ids of the recalled sources that the answer used; the other sources count as unused. */
  readonly usedSources?: readonly string[] | null;
}

const THUMBS = { up: 1, down: 0 } as const;

/** Score and thumbs as one; `invalid_option` if they contradict each other. */
export function scoreOf({ score = null, thumbs = null }: Pick<Feedback, 'score' | 'thumbs'>): number | null {
  if (thumbs === null) return score;
  if (score === null || score === THUMBS[thumbs]) return THUMBS[thumbs];
  throw new RuvLLMError('invalid_option', `a score of ${score} contradicts thumbs ${thumbs}; send only one of them`, {
    data: { option: 'thumbs' },
  });
}
