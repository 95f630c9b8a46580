import type { Adapter, LowRankFactors, MergeInput, MergeOptions, MergeReport } from '../adapters/index.ts';

// Loaded with the first call: most programs have no adapters to make.

/** An adapter of these factors, checked, with the hash of its content. */
export async function createAdapter(architecture: string, factors: readonly LowRankFactors[]): Promise<Adapter> {
  const { createAdapter: create } = await import('../adapters/index.ts');
  return create(architecture, factors);
}

/** Merges adapters in the space of what they add to a model's matrices, and tells what was lost on the way. */
export async function mergeAdapters(
  inputs: readonly MergeInput[],
  options?: MergeOptions,
): Promise<{ readonly adapter: Adapter; readonly report: MergeReport }> {
  const { mergeAdapters: merge } = await import('../adapters/index.ts');
  return merge(inputs, options);
}
