import type { Adapter, LowRankFactors, MergeInput, MergeOptions, MergeReport } from '../adapters/index.ts';

// Loaded with the first call: most programs create no adapters.

/** Creates an adapter from factors, checked, with a content hash. */
export async function createAdapter(architecture: string, factors: readonly LowRankFactors[]): Promise<Adapter> {
  const { createAdapter: create } = await import('../adapters/index.ts');
  return create(architecture, factors);
}

/** Merges adapters in the space of their weight changes, and reports the loss. */
export async function mergeAdapters(
  inputs: readonly MergeInput[],
  options?: MergeOptions,
): Promise<{ readonly adapter: Adapter; readonly report: MergeReport }> {
  const { mergeAdapters: merge } = await import('../adapters/index.ts');
  return merge(inputs, options);
}
