import type { LoggedRequest } from '../runtime/requests/request-log.ts';

/** What somebody thinks of an answer. */
export interface Feedback {
  readonly request: LoggedRequest;
  /** 0 to 1; null: not said. */
  readonly score: number | null;
  readonly thumbs: 'up' | 'down' | null;
  /** What the answer should have been. */
  readonly correction: string | null;
  readonly comment: string | null;
  /** Ids of the recalled texts that the answer used; null: not said. */
  readonly usedSources: readonly string[] | null;
  /** Milliseconds since 1970. */
  readonly createdMs: number;
}

/** Where feedback goes; what `put` has resolved for is kept. */
export interface FeedbackSink {
  put(feedback: Feedback): Promise<void>;
}
