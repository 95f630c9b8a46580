import type { Client } from './client.ts';
import { ApiError } from './errors.ts';
import { messages } from '../messages/index.ts';
import { readSse } from './sse.ts';

export interface Percentiles {
  readonly p50: number;
  readonly p90: number;
  readonly p99: number;
  readonly count: number;
}

export interface LiveRequest {
  readonly id: string;
  /** The machine that answers it: this one, or a remote candidate of the router. */
  readonly node: string;
  readonly tenant: string;
  readonly asked_model: string;
  readonly model: string | null;
  readonly state: 'loading' | 'prompt' | 'generating';
  readonly prompt_tokens: number | null;
  readonly cached_tokens: number | null;
  readonly tokens: number;
  readonly elapsed_ms: number;
  readonly first_token_ms: number | null;
}

export interface PoolTier {
  readonly tier: string;
  readonly bytes: number;
  readonly num_pages: number | null;
  readonly precision?: string;
}

export interface LivePool {
  readonly budget_bytes: number;
  readonly used_bytes: number;
  readonly peak_bytes: number;
  readonly tiers: readonly PoolTier[];
  readonly session_bytes: number;
  readonly disk: { readonly bytes: number; readonly limit_bytes: number; readonly num_pages: number } | null;
  /** Pages in storage that nodes share; absent in servers without the field. */
  readonly shared?: {
    readonly hits: number;
    readonly written: number;
    readonly failures: number;
    readonly suspended: boolean;
  } | null;
  readonly prefix_cache: {
    readonly lookups: number;
    readonly hits: number;
    readonly partial_hits: number;
    readonly misses: number;
    readonly saved_tokens: number;
    readonly evictions: number;
  };
}

export interface LiveModel {
  readonly id: string;
  readonly display_name: string;
  readonly state: string;
  readonly num_users: number;
  readonly tokens_per_second: { readonly prompt?: number; readonly generated?: number };
  readonly first_token_ms: Percentiles | null;
  readonly inter_token_ms: Percentiles | null;
  readonly engine: {
    readonly batch: number;
    readonly waiting: number;
    readonly adapters: number;
    readonly drafts: { readonly proposed: number; readonly accepted: number };
  } | null;
  readonly pool: LivePool | null;
}

/** A condition that an operator should know of: a value and the limit that it passed. */
export interface LiveAlert {
  readonly kind: string;
  readonly model?: string;
  readonly value?: number;
  readonly limit?: number;
  readonly count?: number;
  readonly window_ms?: number;
}

/** The state of the server at one moment. */
export interface LiveSnapshot {
  readonly at: number;
  readonly window_seconds: number;
  readonly is_closing: boolean;
  readonly num_requests: number;
  /** Absent in servers without the field. */
  readonly preparing?: readonly {
    readonly part: string;
    readonly phase: string;
    readonly done_bytes: number;
    readonly total_bytes: number | null;
    readonly reason: string | null;
  }[];
  readonly num_hidden: number;
  /** Since the start: answers of the model API, and those with a status of 500 or above. */
  readonly num_answered: number;
  readonly num_failed: number;
  readonly alerts: readonly LiveAlert[];
  readonly requests: readonly LiveRequest[];
  readonly models: readonly LiveModel[];
}

type Column = readonly (number | null)[];

/** The last hour as columns with one value per sample; null: the model was not loaded. */
export interface LiveHistory {
  /** Milliseconds since 1970. */
  readonly at: readonly number[];
  readonly answered: readonly number[];
  readonly failed: readonly number[];
  readonly models: readonly {
    readonly id: string;
    readonly generated: Column;
    readonly prompt: Column;
    readonly batch: Column;
    readonly waiting: Column;
    readonly used_bytes: Column;
    readonly budget_bytes: Column;
    readonly lookups: Column;
    readonly hits: Column;
  }[];
}

export interface PrefixNode {
  readonly id: number;
  readonly parent: number | null;
  readonly tenant: string;
  readonly adapter: string | null;
  readonly depth: number;
  readonly start_token: number;
  readonly num_tokens: number;
  readonly num_pages: number;
  readonly bytes: number;
  readonly float_pages: number;
  readonly packed_pages: number;
  readonly is_session: boolean;
  readonly pages_in_use: number;
  readonly hits: number;
  readonly last_use: number;
  readonly num_children: number;
  readonly text: string | null;
}

export interface PrefixTree {
  readonly model: string;
  readonly page_tokens: number;
  readonly is_complete: boolean;
  readonly nodes: readonly PrefixNode[];
}

/** Yields one snapshot per second until aborted; throws when the stream ends for any other reason. */
export async function* watchLive(client: Client, signal: AbortSignal): AsyncGenerator<LiveSnapshot, void, undefined> {
  const response = await client.open('GET', '/admin/live/events', undefined, { signal, query: { interval_ms: 1000 } });
  for await (const { event, data } of readSse(response.body!)) {
    if (event === 'live') yield JSON.parse(data) as LiveSnapshot;
    if (event === 'error') {
      const { error } = JSON.parse(data) as { error: { message: string; code?: string } };
      throw new ApiError(error.message, { status: 0, code: error.code ?? 'unknown' });
    }
  }
  throw new ApiError(messages.api.ended, { status: 0, code: 'ended' });
}

/** Reads the samples of the last hour. */
export const readLiveHistory = (client: Client, signal: AbortSignal): Promise<LiveHistory> =>
  client.get('/admin/live/history', { signal });

/** Reads the prefix cache, most used prefixes first. */
export const readPrefixTree = (client: Client, model: string, signal: AbortSignal): Promise<PrefixTree> =>
  client.get('/admin/prefix-tree', { signal, query: { model, depth: 32, limit: 300 } });
