import type { AdapterWish, ScaledAdapter } from '../adapters.ts';
import type { Model } from '../model.ts';
import type { ModelLease } from './model-host.ts';

type Adapters = readonly Required<ScaledAdapter>[];

/** Adapters of requests that choose none, for each model. They are kept while the model is unloaded. */
export interface AdapterScales {
  /** Adapters that have been unloaded since are left out. */
  get(modelId: string, model: Pick<Model, 'adapters'>): Adapters;
  /** An empty list: none, as before the first call. */
  set(modelId: string, adapters: Adapters): void;
}

export function createAdapterScales(): AdapterScales {
  const byModel = new Map<string, Adapters>();
  return {
    get: (modelId, model) =>
      (byModel.get(modelId) ?? []).filter(({ name }) =>
        model.adapters().some((adapter) => adapter.name === name && adapter.tenant === null),
      ),
    set: (modelId, adapters) => void byModel.set(modelId, adapters),
  };
}

/** The adapter in the model's name, or else those of all requests; null: neither. */
export function adaptersOfLease(
  { id, model, adapter }: Pick<ModelLease, 'id' | 'model' | 'adapter'>,
  scales: AdapterScales | undefined,
): Exclude<AdapterWish, ScaledAdapter> | null {
  if (adapter !== null || scales === undefined) return adapter;
  const adapters = scales.get(id, model);
  return adapters.length === 0 ? null : adapters;
}
