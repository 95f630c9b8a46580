import type { Model } from '../runtime/model.ts';
import type { ModelConfig } from '../runtime/model-config.ts';

/**
 * Loads a model into a thread of its own. `pathOrReference` is a path to a GGUF file or a reference such as
 * `owner/repo:Q4_K_M`, which is fetched unless it is in the cache.
 */
export async function loadModel(pathOrReference: string, config?: ModelConfig): Promise<Model> {
  // With the first call: a program that only has a memory does not pay for templates, grammars and tokenizers.
  const { loadModel: load } = await import('./load-model.ts');
  return load(pathOrReference, config);
}
