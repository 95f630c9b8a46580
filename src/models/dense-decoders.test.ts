import { expect, test } from 'vitest';
import { targetShape } from '../adapters/index.ts';
import { createMemorySource } from '../core/byte-source.ts';
import { openGguf } from '../gguf/index.ts';
import { createReferencePackFactory } from '../kernels/reference/reference-pack.ts';
import { buildRandomModel, type RandomArchitecture, type RandomModelOptions } from '../../test/support/random-model.ts';
import { runParts, testLimits } from '../../test/support/run-model.ts';
import { loadModel } from './load-model.ts';
import { planModel } from './plan-model.ts';
import { readShape } from './shape.ts';

const open = (architecture: RandomArchitecture, options: Partial<RandomModelOptions> = {}) =>
  openGguf(
    createMemorySource(buildRandomModel({ type: 'F32', seed: 1, architecture, shape: { numLayers: 2 }, ...options })),
  );
const without = (key: string) => ({ metadata: [{ key, value: null }] });
const f32 = (key: string, value: number) => ({ metadata: [{ key, type: 'f32', value } as const] });

test.each<[RandomArchitecture, string, Partial<RandomModelOptions>, RegExp]>([
  ['granite', 'no logit scale', without('granite.logit_scale'), /granite\.logit_scale/],
  [
    'granite',
    'a logit scale of 0',
    f32('granite.logit_scale', 0),
    /logit_scale is 0, must be above 0 and at most 1000000/,
  ],
  ['granite', 'a residual scale below 0', f32('granite.residual_scale', -1), /residual_scale is -1, must be above 0/],
  ['granite', 'an endless factor', f32('granite.embedding_scale', Infinity), /embedding_scale is Infinity/],
  ['command-r', 'no logit scale', without('command-r.logit_scale'), /command-r\.logit_scale/],
  [
    'command-r',
    'norms of heads',
    { vectors: { 'blk.0.attn_q_norm.weight': new Float32Array(96) } },
    /Command R\+.*attn_q_norm\.weight, 96/,
  ],
  ['cohere2', 'no window', without('cohere2.attention.sliding_window'), /cohere2\.attention\.sliding_window/],
  ['phi2', 'no epsilon', without('phi2.attention.layer_norm_epsilon'), /layer_norm_epsilon/],
  ['phi2', 'a norm without its bias', { omit: (name) => name === 'blk.1.attn_norm.bias' }, /blk\.1\.attn_norm\.bias/],
  [
    'starcoder2',
    'a short bias',
    { vectors: { 'blk.1.ffn_norm.bias': new Float32Array(95) } },
    /ffn_norm\.bias has shape \[95\], the model requires \[96\]/,
  ],
  [
    'olmo2',
    'norms of single heads',
    { vectors: { 'blk.1.attn_k_norm.weight': new Float32Array(16) } },
    /attn_k_norm\.weight has shape \[16\], the model requires \[32\]/,
  ],
  [
    'glm4',
    'no norm after a block',
    { omit: (name) => name === 'blk.1.post_ffw_norm.weight' },
    /blk\.1\.post_ffw_norm\.weight/,
  ],
])('%s: rejects %s', (architecture, _what, options, message) => {
  expect(() => planModel(open(architecture, options), createReferencePackFactory(), testLimits)).toThrowError(
    expect.objectContaining({
      code: expect.stringMatching(/^(invalid_model_file|unsupported)$/),
      message: expect.stringMatching(message),
    }),
  );
});

test('adapters of a gate fit only models that have one', () => {
  for (const architecture of ['phi2', 'starcoder2'] as const) {
    const shape = readShape(open(architecture));
    expect(() => targetShape('ffn_gate', shape, 0)).toThrowError(/layers of this (phi2|starcoder2) model have no gate/);
    expect(targetShape('ffn_up', shape, 0)).toEqual({ numCols: 96, numRows: 160 });
  }
  for (const architecture of ['glm4', 'phi3', 'llama'] as const) {
    expect(targetShape('ffn_gate', readShape(open(architecture)), 0)).toEqual({ numCols: 96, numRows: 160 });
  }
});

test.each(['phi2', 'starcoder2'] as const)('%s activates by the tanh formula', async (architecture) => {
  // The two formulas differ by less than the tolerance of golden logits.
  const formulas: string[] = [];
  const factory = createReferencePackFactory();
  const watched: typeof factory = {
    ...factory,
    async create(options) {
      const pack = await factory.create(options);
      return {
        ...pack,
        gelu(op) {
          formulas.push(op.formula);
          pack.gelu(op);
        },
      };
    },
  };
  const model = await loadModel(open(architecture), watched, { limits: testLimits });
  await runParts(model, [{ tokenIds: [1, 5, 9], start: 0, pageIds: [0] }]);
  expect(formulas).toEqual(['tanh', 'tanh']);
  await model.dispose();
});
