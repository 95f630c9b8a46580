import type { Client } from './client.ts';
import type { ListOf, ModelEntry } from './types.ts';

/** A model that is served, as administrators and readers of all see it. */
export interface ServedModel {
  readonly id: string;
  readonly aliases: readonly string[];
  readonly state: NonNullable<ModelEntry['state']>;
  readonly num_users: number;
  /** What loading it takes; null: only known afterwards. */
  readonly size_bytes: number | null;
  readonly held_bytes: number;
  /** Whether it was added while the server runs, and can be taken out again. */
  readonly is_added: boolean;
  readonly error: string | null;
}

export type Fit = 'yes' | 'after_unload' | 'no' | 'unknown';

/** A file on the server's machine. */
export interface CachedModel {
  readonly reference: string;
  readonly size_bytes: number;
  readonly modified: number;
  readonly served_as: string | null;
  readonly fits: Fit;
}

/** `GET /admin/models`. */
export interface ModelsReport extends ListOf<ServedModel> {
  /** null: no limit of its own. */
  readonly budget_bytes: number | null;
  readonly used_bytes: number;
  readonly free_bytes: number | null;
  /** null: the server only has what it was started with. */
  readonly cached: readonly CachedModel[] | null;
}

/** A model on its way to the server's machine. */
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
  readonly error: string | null;
}

/** Longer than a click is waited for; what takes longer is seen in the list. */
const LOAD_WAIT_MS = 1000;

const pathOf = (id: string): string => id.split('/').map(encodeURIComponent).join('/');

/** What is done with models. */
export const modelEndpoints = (client: Client) => ({
  report: (signal?: AbortSignal) => client.get<ModelsReport>('/admin/models', { signal }),
  load: (model: string, name?: string) =>
    client.post<ServedModel>('/admin/models/load', {
      model,
      wait_ms: LOAD_WAIT_MS,
      ...(name === undefined ? {} : { name }),
    }),
  unload: (model: string, isForced: boolean) =>
    client.post<ServedModel>('/admin/models/unload', { model, ...(isForced ? { force: true } : {}) }),
  remove: (id: string) => client.remove<unknown>(`/admin/models/${pathOf(id)}`),
  pull: (model: string) => client.post<Pull>('/admin/models/pull', { model }),
  pulls: async (signal?: AbortSignal) => (await client.get<ListOf<Pull>>('/admin/models/pulls', { signal })).data,
  cancelPull: (id: string) => client.remove<Pull>(`/admin/models/pulls/${encodeURIComponent(id)}`),
});
