import type { SerializedError } from '../core/errors.ts';
import type { SampledToken, Sampler } from '../sampling/types.ts';

/** One sequence to be continued. Checked by the engine; ids rise from call to call. */
export interface EngineRequest {
  readonly id: number;
  readonly promptIds: readonly number[];
  readonly maxTokens: number;
  /** Tokens that end the sequence without becoming part of it. */
  readonly stopIds: ReadonlySet<number>;
  /** Owned by the sequence: its random state moves with every token. */
  readonly sampler: Sampler;
}

export interface TokenEvent {
  readonly type: 'token';
  readonly id: number;
  readonly token: SampledToken;
  /** From `add` to the first step that computed this sequence. */
  readonly queuedMs: number;
  /** From `add` to this token. */
  readonly elapsedMs: number;
}

export interface FinishedEvent {
  readonly type: 'finished';
  readonly id: number;
  readonly reason: 'stop' | 'length';
  /** The token that ended it, when the reason is `stop`. */
  readonly stopId: number | null;
  readonly queuedMs: number;
  readonly elapsedMs: number;
}

export interface FailedEvent {
  readonly type: 'failed';
  readonly id: number;
  readonly error: SerializedError;
}

/** What a step has to say about the sequences in it; plain data. */
export type EngineEvent = TokenEvent | FinishedEvent | FailedEvent;

/** Rows of one sequence in a step: its tokens [start, start + numRows). */
export interface ScheduledRows {
  readonly id: number;
  readonly start: number;
  readonly numRows: number;
  /** The rows reach the last known token: a new one will be sampled. */
  readonly isCaughtUp: boolean;
}

/** What one step will compute, and what had to happen for it; plain data. */
export interface Schedule {
  readonly rows: readonly ScheduledRows[];
  readonly admittedIds: readonly number[];
  readonly preemptedIds: readonly number[];
}

export interface EngineStats {
  readonly numRunning: number;
  readonly numWaiting: number;
  readonly numPages: number;
  readonly numFreePages: number;
  readonly numSteps: number;
  /** Rows given to the model, those computed again after a preemption included. */
  readonly numComputedTokens: number;
  readonly numGeneratedTokens: number;
  readonly numPreemptions: number;
}
