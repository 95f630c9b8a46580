import type { TensorTypeName } from '../../src/core/tensor-type.ts';
import { deltaKinds } from './hf-delta-kinds.ts';
import { denseKinds } from './hf-dense-kinds.ts';
import { hybridKinds } from './hf-hybrid-kinds.ts';
import type { HfKind } from './hf-kind.ts';
import { mixtureKinds } from './hf-mixture-kinds.ts';
import { graniteExperts } from './random-experts.ts';
import { buildRandomModel, type RandomArchitecture, type RandomModelOptions } from './random-model.ts';

/** All kinds of checkpoints, by the title of their random model. */
export const HF_KINDS: Readonly<Record<string, HfKind>> = {
  ...denseKinds,
  ...mixtureKinds,
  ...hybridKinds,
  ...deltaKinds,
};

/** Random models whose title is not their architecture, or that need another shape. */
export const HF_MODELS: Readonly<Record<string, Partial<RandomModelOptions>>> = {
  mixtral: { architecture: 'llama', shape: { experts: { numExperts: 4, numUsed: 2, feedForwardDim: 160 } } },
  'qwen3moe in stacks': { architecture: 'qwen3moe' },
  // One length is in config.json.
  'gpt-oss': { shape: { feedForwardDim: 64 }, typeOf: (name) => (name.endsWith('_exps.weight') ? 'MXFP4' : 'F32') },
  'gpt-oss as floats': { architecture: 'gpt-oss', shape: { feedForwardDim: 64 } },
  'deepseek2 without query rank': {
    architecture: 'deepseek2',
    shape: {
      isLite: true,
      experts: {
        numExperts: 6,
        numUsed: 2,
        feedForwardDim: 64,
        sharedDim: 64,
        numDenseLayers: 1,
        keys: { expert_shared_count: 1 },
      },
    },
  },
  'granitehybrid with experts': { architecture: 'granitehybrid', shape: { experts: graniteExperts(8, 64, 96) } },
  'granite in the hybrid family': { architecture: 'granite' },
  // Five layers up to the first without a window. The quantile of 95 %, because the default of files without a list is rounded.
  gemma3n: {
    shape: { numLayers: 6 },
    metadata: [
      {
        key: 'gemma3n.activation_sparsity_scale',
        type: 'array<f32>',
        value: new Float32Array(6).fill(1.6448536269514722),
      },
    ],
  },
  // Two layers with a window and one without, whose values are the keys.
  gemma4: { shape: { numLayers: 3 }, omit: (name) => name === 'output.weight' },
};

export function buildHfModel(title: string, type: TensorTypeName = 'F32'): Uint8Array<ArrayBuffer> {
  const { shape, typeOf, ...options } = HF_MODELS[title] ?? {};
  return buildRandomModel({
    architecture: title as RandomArchitecture,
    type,
    seed: 3,
    shape: { numLayers: 2, ...shape },
    // The converter of Llama writes no divisors of frequencies without Llama 3's scaling.
    omit: (name) => name === 'rope_freqs.weight',
    ...(typeOf === undefined || type !== 'F32' ? {} : { typeOf }),
    ...options,
  });
}
