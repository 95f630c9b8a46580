import type { Model } from '../model.ts';
import type { GenerationRequest } from './generation-request.ts';

/** Loads in progress, so that two requests do not load the same file twice. */
const loads = new WeakMap<Model, Map<string, Promise<string>>>();

/** The request with the adapter of its `adapterPath`, which is loaded once per model. */
export async function withAdapterFile(request: GenerationRequest, model: Model): Promise<GenerationRequest> {
  const { adapterPath: path, options } = request;
  if (path === undefined || options.adapter !== undefined) return request;
  const pending = loads.get(model) ?? new Map<string, Promise<string>>();
  loads.set(model, pending);
  let loading = pending.get(path);
  if (loading === undefined) {
    loading = loadOnce(model, path).finally(() => pending.delete(path));
    pending.set(path, loading);
  }
  return { ...request, options: { ...options, adapter: await loading } };
}

/** Its name does not contain the path, which clients must not see. */
async function loadOnce(model: Model, path: string): Promise<string> {
  const adapters = model.adapters();
  const loaded = adapters.find((adapter) => adapter.path === path && adapter.tenant === null);
  if (loaded !== undefined) return loaded.name;
  const names = new Set(adapters.map(({ name }) => name));
  let number = 1;
  while (names.has(`modelfile-${number}`)) number++;
  return (await model.loadAdapter(path, { name: `modelfile-${number}` })).name;
}
