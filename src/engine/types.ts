import type { SerializedError } from '../core/errors.ts';
import type { PrefixQuery, PrefixReport } from '../kv-cache/types.ts';
import type { KvCacheStats } from '../kv-cache/kv-cache.ts';
import type { Retention } from '../kv-cache/types.ts';
import type { SampledToken, Sampler } from '../sampling/types.ts';
import type { ExaminedTokens, Examiner } from './examiner.ts';
import type { PooledRows, Pooling } from './pooling.ts';
import type { DraftCounts, DraftSourceName } from './speculation/types.ts';

export type { PrefixQuery, PrefixReport };

/** One sequence to continue. Validated by the engine; ties in the queue are broken by the lower id. */
export interface EngineRequest {
  readonly id: number;
  readonly promptIds: readonly number[];
  /** Images in the prompt, in its order; default none. */
  readonly images?: readonly SequenceImage[];
  readonly maxTokens: number;
  /** Tokens that end the sequence without becoming part of it. */
  readonly stopIds: ReadonlySet<number>;
  /** Owned by the sequence: its random state advances with every token. */
  readonly sampler: Sampler;
  /** A text that the answer probably repeats, as tokens; default none. */
  readonly expectedIds?: readonly number[];
  /** If set, nothing is generated and the prompt's hidden states become one vector. Requires `cachePrefix` false. */
  readonly pooling?: Pooling;
  /** If set, it is also the sampler: the given tokens are examined, without an event per token. */
  readonly examiner?: Examiner;
  /** Tenants never share pages and are served in turn. */
  readonly tenant: string;
  /** Adapters of this request; default none. */
  readonly adapters?: readonly RequestAdapter[];
  /** Whether it reads and fills the prefix cache. */
  readonly cachePrefix: boolean;
  /** How long its unused pages stay cached. */
  readonly retention: Retention;
  /** Higher goes first; `MIN_PRIORITY` to `MAX_PRIORITY`. */
  readonly priority: number;
  /** Milliseconds until it fails with `deadline_exceeded`; null: never. */
  readonly timeoutMs: number | null;
}

/** An image in a prompt: its rows take the places of placeholder tokens. */
export interface SequenceImage {
  /** Position of its first row. */
  readonly start: number;
  readonly numRows: number;
  /** Identifies `values`: equal hashes, equal values. A SHA-256 in hexadecimal. */
  readonly hash: string;
  /** f32[numRows × embeddingDim] */
  readonly values: Float32Array;
}

/** A loaded adapter, by the id it was loaded with. */
export interface RequestAdapter {
  readonly id: number;
  /** Multiplies the adapter's own scale; 1: unchanged. */
  readonly scale: number;
}

/** A resolved adapter, in summing order. */
export interface SequenceAdapter extends RequestAdapter {
  readonly contentHash: string;
}

/** A request whose adapters are pinned. */
export interface AdmittedRequest extends EngineRequest {
  readonly adapters: readonly SequenceAdapter[];
  /** The adapter content that K and V depend on; null: none. Never a name. */
  readonly adapterHash: string | null;
}

export const MIN_PRIORITY = -10;
export const MAX_PRIORITY = 10;

/** Progress of a sequence, included in every event. */
export interface Progress {
  /** From `add` to the first step that computed this sequence. */
  readonly queuedMs: number;
  /** From `add` to now. */
  readonly elapsedMs: number;
  /** Cached tokens of the prompt, which were not computed. */
  readonly cachedTokens: number;
  /** Drafted tokens that became part of the answer, and those that did not. */
  readonly acceptedDraftTokens: number;
  readonly rejectedDraftTokens: number;
}

export interface TokenEvent extends Progress {
  readonly type: 'token';
  readonly id: number;
  /** Hashes of the prompt's pages, with the first token only; absent if the engine does not report its cache. */
  readonly promptBlocks?: readonly string[];
  readonly token: SampledToken;
}

export interface FinishedEvent extends Progress {
  readonly type: 'finished';
  readonly id: number;
  readonly reason: 'stop' | 'length';
  /** The token that ended it, when the reason is `stop`. */
  readonly stopId: number | null;
}

export interface EmbeddedEvent extends Progress {
  readonly type: 'embedded';
  readonly id: number;
  /** Pooled, not normalized. */
  readonly embedding: Float32Array;
}

/** Result of examined tokens. */
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

/** An event of one sequence in a step; plain data. */
export type EngineEvent = TokenEvent | FinishedEvent | EmbeddedEvent | ExaminedEvent | FailedEvent;

/** Rows of one sequence in a step: its tokens [start, start + numRows), the last of which may be drafted. */
export interface ScheduledRows {
  readonly id: number;
  readonly start: number;
  readonly numRows: number;
  /** The rows reach the last token: a new one will be sampled. */
  readonly isCaughtUp: boolean;
  /** Guessed tokens in the last rows; each is verified by the row before it. Default none. */
  readonly draft?: readonly number[];
  /** Rows to pool, for embeddings only. */
  readonly hidden?: PooledRows;
}

/** The work of one step, with its admissions and preemptions; plain data. */
export interface Schedule {
  readonly rows: readonly ScheduledRows[];
  readonly admittedIds: readonly number[];
  readonly preemptedIds: readonly number[];
}

/** Current work of an engine, and its totals since loading. */
export interface EngineStats {
  readonly numRunning: number;
  readonly numWaiting: number;
  /** Float pages the budget holds, and those that new sequences can have: neither running ones nor reservations take them. */
  readonly numPages: number;
  readonly numFreePages: number;
  readonly numSteps: number;
  /** Rows computed by the model, including those recomputed after a preemption. */
  readonly numComputedTokens: number;
  readonly numGeneratedTokens: number;
  readonly numPreemptions: number;
  /** Requests rejected because of limits, and those that timed out. */
  readonly numRefused: number;
  readonly numExpired: number;
  /** Drafted tokens by source, since loading. */
  readonly drafts: Readonly<Record<DraftSourceName, DraftCounts>>;
  /** Bytes of the budget that earlier answers take, which later ones are drafted from. */
  readonly draftBytes: number;
  /** Adapters in the page memory, including unloaded ones still in use; without idle ones that made room. */
  readonly numAdapters: number;
  readonly cache: KvCacheStats;
}
