import type { Offset, WeightMatrix } from '../kernels/contract.ts';
import type { WeightLoader } from '../models/weight-loader.ts';
import type { VisionShape } from './vision-shape.ts';

/** Asks for every weight of the encoder, always in the same order. */
export function readVisionWeights(loader: WeightLoader, shape: VisionShape) {
  const { embeddingDim: dim, feedForwardDim, numPatches, patchSize, scaleFactor, outputDim, numLayers, family } = shape;
  const norm = (name: string): { weight: Offset; bias: Offset } => ({
    weight: loader.vector(`${name}.weight`, dim),
    bias: loader.vector(`${name}.bias`, dim),
  });
  return {
    // [patchSize, patchSize, 3, dim]: a row has the values of one patch, colour by colour.
    patches: {
      weight: loader.flattened('v.patch_embd.weight', [patchSize, patchSize, 3], dim),
      bias: loader.vector('v.patch_embd.bias', dim),
    },
    positions: loader.matrix('v.position_embd.weight', numPatches, dim),
    layers: Array.from({ length: numLayers }, (_, layer) => {
      const block = `v.blk.${layer}`;
      return {
        attentionNorm: norm(`${block}.ln1`),
        q: loader.projection(`${block}.attn_q`, dim, dim),
        k: loader.projection(`${block}.attn_k`, dim, dim),
        v: loader.projection(`${block}.attn_v`, dim, dim),
        output: loader.projection(`${block}.attn_out`, dim, dim),
        feedForwardNorm: norm(`${block}.ln2`),
        up: loader.projection(`${block}.ffn_up`, feedForwardDim, dim),
        down: loader.projection(`${block}.ffn_down`, dim, feedForwardDim),
      };
    }),
    finalNorm: norm('v.post_ln'),
    projection: loader.matrix(family.projection, outputDim, dim * scaleFactor ** 2) satisfies WeightMatrix,
  };
}

export type VisionWeights = ReturnType<typeof readVisionWeights>;
