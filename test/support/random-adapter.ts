import {
  ADAPTER_TARGETS,
  type Adapter,
  type AdapterBase,
  type AdapterTarget,
  createAdapter,
  targetShape,
} from '../../src/adapters/index.ts';
import { normals } from './random-values.ts';

export interface RandomAdapterOptions {
  readonly seed: number;
  readonly rank?: number;
  /** alpha / rank. */
  readonly scale?: number;
  readonly targets?: readonly AdapterTarget[];
  readonly layers?: readonly number[];
  /** Size of the change as a share of the input. Default 0.3. */
  readonly strength?: number;
}

/** An adapter of random factors for a model of this shape; by default of all matrices. */
export async function randomAdapter(base: AdapterBase, options: RandomAdapterOptions): Promise<Adapter> {
  const { seed, rank = 4, scale = 2, strength = 0.3 } = options;
  const targets =
    options.targets ?? ADAPTER_TARGETS.filter((target) => target !== 'ffn_gate' || base.isGated !== false);
  const layers = options.layers ?? Array.from({ length: base.numLayers }, (_, layer) => layer);
  const sites = targets.flatMap((target) => (target === 'output' ? [-1] : layers).map((layer) => ({ target, layer })));
  const factors = sites.map(({ target, layer }, i) => {
    const { numCols, numRows } = targetShape(target, base, layer);
    const a = normals(rank * numCols, seed * 1000 + 2 * i, 1 / Math.sqrt(numCols));
    const b = normals(numRows * rank, seed * 1000 + 2 * i + 1, strength / (scale * Math.sqrt(rank)));
    return { target, layer, numCols, numRows, rank, scale, a, b };
  });
  return createAdapter(base.architecture, factors);
}

/** A small shape with fewer KV heads than query heads. */
export const SMALL_BASE: AdapterBase = {
  architecture: 'llama',
  numLayers: 2,
  embeddingDim: 16,
  numHeads: 4,
  numKvHeads: 2,
  headDim: 4,
  feedForwardDim: 24,
  vocabSize: 40,
};
