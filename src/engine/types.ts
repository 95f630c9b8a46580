import type { SerializedError } from '../core/errors.ts';
import type { PrefixQuery, PrefixReport } from '../kv-cache/describe-prefixes.ts';
import type { KvCacheStats } from '../kv-cache/kv-cache.ts';
import type { Retention } from '../kv-cache/types.ts';
import type { SampledToken, Sampler } from '../sampling/types.ts';
import type { ExaminedTokens, Examiner } from './examiner.ts';
import type { PooledRows, Pooling } from './pooling.ts';

export type { PrefixQuery, PrefixReport };

/** One sequence to be continued. Checked by the engine; of two that wait alike the one with the lower id goes first. */
export interface EngineRequest {
  readonly id: number;
  readonly promptIds: readonly number[];
  readonly maxTokens: number;
  /** Tokens that end the sequence without becoming part of it. */
  readonly stopIds: ReadonlySet<number>;
  /** Owned by the sequence: its random state moves with every token. */
  readonly sampler: Sampler;
  /** Set: nothing is generated, the hidden states of the prompt become one vector. Needs `cachePrefix` false. */
  readonly pooling?: Pooling;
  /** Set: it is the sampler, too; tokens are given and looked at, and nobody hears of them one by one. */
  readonly examiner?: Examiner;
  /** Whose request it is: tenants never share pages, and are served in turns. */
  readonly tenant: string;
  /** What is added to the model for this request; default nothing. */
  readonly adapters?: readonly RequestAdapter[];
  /** Whether known prefixes are used, and this one becomes known. */
  readonly cachePrefix: boolean;
  /** How long its pages stay when nobody uses them. */
  readonly retention: Retention;
  /** Higher goes first; `MIN_PRIORITY` to `MAX_PRIORITY`. */
  readonly priority: number;
  /** Milliseconds after which it fails with `deadline_exceeded`; null: never. */
  readonly timeoutMs: number | null;
}

/** A loaded adapter, by the id it was loaded with. */
export interface RequestAdapter {
  readonly id: number;
  /** On top of its own; 1: as it was made. */
  readonly scale: number;
}

/** The same, as the engine adds them up. */
export interface SequenceAdapter extends RequestAdapter {
  readonly contentHash: string;
}

/** A request whose adapters are pinned. */
export interface AdmittedRequest extends EngineRequest {
  readonly adapters: readonly SequenceAdapter[];
  /** What of the adapters' content K and V depend on; null: nothing. Never a name. */
  readonly adapterHash: string | null;
}

export const MIN_PRIORITY = -10;
export const MAX_PRIORITY = 10;

/** How far a sequence has come, with every event. */
export interface Progress {
  /** From `add` to the first step that computed this sequence. */
  readonly queuedMs: number;
  /** From `add` to now. */
  readonly elapsedMs: number;
  /** Tokens of the prompt that were known before and not computed. */
  readonly cachedTokens: number;
}

export interface TokenEvent extends Progress {
  readonly type: 'token';
  readonly id: number;
  readonly token: SampledToken;
}

export interface FinishedEvent extends Progress {
  readonly type: 'finished';
  readonly id: number;
  readonly reason: 'stop' | 'length';
  /** The token that ended it, when the reason is `stop`. */
  readonly stopId: number | null;
}

/** A sequence that generates nothing is done. */
export interface EmbeddedEvent extends Progress {
  readonly type: 'embedded';
  readonly id: number;
  /** Pooled, not normalized. */
  readonly embedding: Float32Array;
}

/** The given tokens of a sequence have all been looked at. */
export interface ExaminedEvent extends Progress {
  readonly type: 'examined';
  readonly id: number;
  readonly tokens: ExaminedTokens;
}

export interface FailedEvent {
  readonly type: 'failed';
  readonly id: number;
  readonly error: SerializedError;
}

/** What a step has to say about the sequences in it; plain data. */
export type EngineEvent = TokenEvent | FinishedEvent | EmbeddedEvent | ExaminedEvent | FailedEvent;

/** Rows of one sequence in a step: its tokens [start, start + numRows). */
export interface ScheduledRows {
  readonly id: number;
  readonly start: number;
  readonly numRows: number;
  /** The rows reach the last known token: a new one will be sampled. */
  readonly isCaughtUp: boolean;
  /** Rows whose hidden states are pooled; only where something is. */
  readonly hidden?: PooledRows;
}

/** What one step will compute, and what had to happen for it; plain data. */
export interface Schedule {
  readonly rows: readonly ScheduledRows[];
  readonly admittedIds: readonly number[];
  readonly preemptedIds: readonly number[];
}

/** What an engine is doing, and its totals since it was loaded. */
export interface EngineStats {
  readonly numRunning: number;
  readonly numWaiting: number;
  /** Float pages the budget holds, and those whose bytes no running sequence needs now. */
  readonly numPages: number;
  readonly numFreePages: number;
  readonly numSteps: number;
  /** Rows given to the model, those computed again after a preemption included. */
  readonly numComputedTokens: number;
  readonly numGeneratedTokens: number;
  readonly numPreemptions: number;
  /** Requests refused because too many were waiting, and such as ran out of their own time. */
  readonly numRefused: number;
  readonly numExpired: number;
  /** Adapters in memory, such as were unloaded and are still in use included. */
  readonly numAdapters: number;
  readonly cache: KvCacheStats;
}
