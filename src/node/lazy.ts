import type { Model } from '../runtime/model.ts';
import type { ModelConfig } from '../runtime/model-config.ts';

/**
 * Loads a model into its own thread. `pathOrReference` is the path of a GGUF file or a reference such as `owner/repo:Q4_K_M`,
 * which is downloaded unless it is in the cache.
 */
export async function loadModel(pathOrReference: string, config?: ModelConfig): Promise<Model> {
  // On the first call: programs that only use the memory do not load templates, grammars and tokenizers.
  const { loadModel: load } = await import('./load-model.ts');
  return load(pathOrReference, config);
}
