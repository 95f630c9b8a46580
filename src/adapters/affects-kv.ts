import type { Adapter, AdapterBase, LowRankFactors } from './types.ts';

/**
 * Whether K or V of any token depends on the adapter. They do not if it changes only the LM head, or only parts of the last block after
 * its keys and values: q, the output projection, the feed-forward. Only then can pages computed without it be used with it.
 */
export function affectsKv(
  { factors }: Pick<Adapter, 'factors'>,
  { numLayers }: Pick<AdapterBase, 'numLayers'>,
): boolean {
  return factors.some((factor) => factorAffectsKv(factor, numLayers));
}

function factorAffectsKv({ target, layer }: LowRankFactors, numLayers: number): boolean {
  if (target === 'output') return false;
  return layer !== numLayers - 1 || target === 'attn_k' || target === 'attn_v';
}
