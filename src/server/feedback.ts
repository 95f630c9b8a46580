import type { LoggedRequest } from '../runtime/requests/request-log.ts';

/** Feedback on an answer. */
export interface Feedback {
  readonly request: LoggedRequest;
  /** 0 to 1; null: not given. */
  readonly score: number | null;
  readonly thumbs: 'up' | 'down' | null;
  /** The right answer. */
  readonly correction: string | null;
  readonly comment: string | null;
  /** Ids of the recalled texts that the answer used; null: not given. */
  readonly usedSources: readonly string[] | null;
  /** Milliseconds since 1970. */
  readonly createdMs: number;
}

/** Storage of feedback; an item is durable once `put` resolves. */
export interface FeedbackSink {
  put(feedback: Feedback): Promise<void>;
}
