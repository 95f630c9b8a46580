import type { MetadataEntry } from '../../src/gguf/index.ts';

/** The experts of a random model. */
export interface RandomExperts {
  numExperts: number;
  numUsed: number;
  feedForwardDim: number;
  /** 0: no shared expert. */
  sharedDim?: number;
  /** The shared expert has a weight of its own. */
  hasSharedRouter?: boolean;
  hasBiases?: boolean;
  /** A bias of the choice. */
  hasChoiceBias?: boolean;
  /** Layers before the first with experts; default 0. */
  numDenseLayers?: number;
  /** Further keys under the architecture's prefix. */
  keys?: Readonly<Record<string, number | boolean>>;
}

/** Granite's files have the size of an expert as that of a feed-forward layer. */
export const graniteExperts = (numExperts: number, feedForwardDim: number, sharedDim: number): RandomExperts => ({
  numExperts,
  numUsed: 3,
  feedForwardDim,
  sharedDim,
  keys: { feed_forward_length: feedForwardDim },
});

/** Writers of a random model's tensors. */
export interface ExpertWriters {
  matrix(name: string, dims: readonly [numCols: number, numRows: number, count?: number], deviation?: number): void;
  /** F32, like the routers of real files. */
  floats(name: string, dims: readonly number[], deviation: number): void;
}

export function expertMetadata(prefix: string, experts: RandomExperts): MetadataEntry[] {
  const entry = (name: string, value: number | boolean): MetadataEntry => {
    const key = `${prefix}.${name}`;
    if (typeof value === 'boolean') return { key, type: 'bool', value };
    return { key, type: Number.isInteger(value) ? 'u32' : 'f32', value };
  };
  return [
    entry('expert_count', experts.numExperts),
    entry('expert_used_count', experts.numUsed),
    entry('expert_feed_forward_length', experts.feedForwardDim),
    ...(experts.sharedDim ? [entry('expert_shared_feed_forward_length', experts.sharedDim)] : []),
    ...(experts.numDenseLayers ? [entry('leading_dense_block_count', experts.numDenseLayers)] : []),
    ...Object.entries(experts.keys ?? {}).map(([name, value]) => entry(name, value)),
  ];
}

/** The tensors of one layer's experts. */
export function writeExperts(
  block: string,
  dim: number,
  experts: RandomExperts,
  { matrix, floats }: ExpertWriters,
): void {
  const { numExperts, feedForwardDim, sharedDim = 0, hasSharedRouter = false, hasBiases = false } = experts;
  // Far enough apart that rounding rarely changes the choice.
  floats(`${block}.ffn_gate_inp.weight`, [dim, numExperts], 3 / Math.sqrt(dim));
  matrix(`${block}.ffn_gate_exps.weight`, [dim, feedForwardDim, numExperts]);
  matrix(`${block}.ffn_up_exps.weight`, [dim, feedForwardDim, numExperts]);
  matrix(`${block}.ffn_down_exps.weight`, [feedForwardDim, dim, numExperts]);
  if (hasBiases) {
    floats(`${block}.ffn_gate_inp.bias`, [numExperts], 0.2);
    floats(`${block}.ffn_gate_exps.bias`, [feedForwardDim, numExperts], 0.2);
    floats(`${block}.ffn_up_exps.bias`, [feedForwardDim, numExperts], 0.2);
    floats(`${block}.ffn_down_exps.bias`, [dim, numExperts], 0.2);
  }
  if (experts.hasChoiceBias) floats(`${block}.exp_probs_b.bias`, [numExperts], 0.1);
  if (sharedDim === 0) return;
  matrix(`${block}.ffn_gate_shexp.weight`, [dim, sharedDim]);
  matrix(`${block}.ffn_up_shexp.weight`, [dim, sharedDim]);
  matrix(`${block}.ffn_down_shexp.weight`, [sharedDim, dim]);
  if (hasSharedRouter) floats(`${block}.ffn_gate_inp_shexp.weight`, [dim], 2 / Math.sqrt(dim));
}
