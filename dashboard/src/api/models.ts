import type { Client } from './client.ts';
import type { ListOf, ModelEntry } from './types.ts';

/** A served model, as keys with `operate` permission see it. */
export interface ServedModel {
  readonly id: string;
  /** The machine that serves it. */
  readonly node: string;
  readonly display_name: string;
  readonly aliases: readonly string[];
  readonly state: NonNullable<ModelEntry['state']>;
  readonly num_users: number;
  /** Memory that loading it requires; null: unknown until it is loaded. */
  readonly size_bytes: number | null;
  readonly held_bytes: number;
  /** Whether it was added after the server started, and can be removed again. */
  readonly is_added: boolean;
  /** Whether it is never unloaded for other models. */
  readonly is_pinned: boolean;
  readonly error: string | null;
}

export type Fit = 'yes' | 'after_unload' | 'no' | 'unknown';

/** A model file on the server's machine. */
export interface CachedModel {
  readonly reference: string;
  readonly size_bytes: number;
  /** Memory that loading it requires; null: unknown. */
  readonly required_bytes: number | null;
  readonly modified: number;
  readonly served_as: string | null;
  readonly fits: Fit;
}

/** Size and hash of a model's file. */
export interface ModelFile {
  readonly path: string;
  readonly sizeBytes: number;
  readonly sha256: string;
}

/** `HEAD /v1/model-files/ID`. */
export async function describeModelFile(client: Client, id: string, signal?: AbortSignal): Promise<ModelFile> {
  const path = `/v1/model-files/${id.split('/').map(encodeURIComponent).join('/')}`;
  const { headers } = await client.open('HEAD', path, undefined, { signal });
  return {
    path,
    sizeBytes: Number(headers.get('content-length')),
    sha256: (headers.get('etag') ?? '').replaceAll('"', ''),
  };
}

/** `GET /admin/models`. */
export interface ModelsReport extends ListOf<ServedModel> {
  /** null: no limit. */
  readonly budget_bytes: number | null;
  readonly used_bytes: number;
  readonly free_bytes: number | null;
  /** null: the server has no catalog and serves only the models it was started with. */
  readonly cached: readonly CachedModel[] | null;
}

/** A download of a model to the server's machine. */
export interface Pull {
  readonly id: string;
  readonly reference: string;
  readonly state: 'running' | 'done' | 'failed' | 'cancelled';
  readonly phase: string | null;
  readonly item: string | null;
  readonly done_bytes: number;
  readonly total_bytes: number | null;
  readonly bytes_per_second: number | null;
  readonly started: number;
  readonly ended: number | null;
  readonly error: { readonly code: string; readonly message: string } | null;
}

/** `GET /admin/models/suggestions`: models for a first try. The figures are estimates. */
export interface ModelSuggestions extends ListOf<SuggestedModel> {
  readonly is_hub_reachable: boolean;
}

export interface SuggestedModel {
  readonly name: string;
  readonly size_bytes: number;
  readonly required_bytes: number;
  readonly tokens_per_second: number;
  readonly is_downloaded: boolean;
  readonly fits: Fit;
}

/** `POST /admin/models/benchmark`. */
export interface Benchmark {
  readonly prompt_tokens_per_second: number;
  readonly tokens_per_second: number;
  /** Seconds since 1970. */
  readonly measured: number;
}

/** Slower loads continue in the background; the list shows their state. */
const LOAD_WAIT_MS = 1000;

const pathOf = (id: string): string => id.split('/').map(encodeURIComponent).join('/');

/** Endpoints that manage models. */
export const modelEndpoints = (client: Client) => ({
  report: (signal?: AbortSignal) => client.get<ModelsReport>('/admin/models', { signal }),
  suggestions: (signal?: AbortSignal) => client.get<ModelSuggestions>('/admin/models/suggestions', { signal }),
  load: (model: string, name?: string) =>
    client.post<ServedModel>('/admin/models/load', {
      model,
      wait_ms: LOAD_WAIT_MS,
      ...(name === undefined ? {} : { name }),
    }),
  unload: (model: string, isForced: boolean) =>
    client.post<ServedModel>('/admin/models/unload', { model, ...(isForced ? { force: true } : {}) }),
  benchmark: (model: string) => client.post<Benchmark>('/admin/models/benchmark', { model }),
  remove: (id: string) => client.remove<unknown>(`/admin/models/${pathOf(id)}`),
  pull: (model: string) => client.post<Pull>('/admin/models/pull', { model }),
  pulls: async (signal?: AbortSignal) => (await client.get<ListOf<Pull>>('/admin/models/pulls', { signal })).data,
  cancelPull: (id: string) => client.remove<Pull>(`/admin/models/pulls/${encodeURIComponent(id)}`),
});
