import { expect, test } from 'vitest';
import { buildRandomModel } from '../../../test/support/random-model.ts';
import { createMemorySource } from '../../core/byte-source.ts';
import { RuvLLMError } from '../../core/errors.ts';
import { dequantizeRow, quantizeRow } from '../../quant/index.ts';
import { createMemorySink, openGguf, writeGguf } from '../index.ts';
import type { GgufFile } from '../types.ts';
import type { MixName } from './mixes.ts';
import { sourceFromGguf } from './quantize-source.ts';
import { planRequantization, requantize } from './requantize.ts';

const SHAPE = { embeddingDim: 256, feedForwardDim: 512, numLayers: 8, numHeads: 8, numKvHeads: 2, headDim: 32 };
const openModel = (shape: Partial<typeof SHAPE> = {}, type: 'F32' | 'Q8_0' = 'F32'): GgufFile =>
  openGguf(
    createMemorySource(buildRandomModel({ architecture: 'llama', type, seed: 1, shape: { ...SHAPE, ...shape } })),
  );

const typesOf = (gguf: GgufFile, mix: MixName): Record<string, string> =>
  Object.fromEntries(planRequantization(sourceFromGguf(gguf), mix).map(({ tensor, type }) => [tensor.name, type]));

test('Q4_K_M stores the output and the sensitive layers of attn_v and ffn_down in six bits', () => {
  const types = typesOf(openModel(), 'Q4_K_M');
  expect(types['output.weight']).toBe('Q6_K');
  expect(types['token_embd.weight']).toBe('Q4_K');
  // Of 8 layers the first, the last, and every third between them.
  const layersOf = (part: string) =>
    [...Array(8).keys()].filter((layer) => types[`blk.${layer}.${part}.weight`] === 'Q6_K');
  expect(layersOf('attn_v')).toEqual([0, 3, 6, 7]);
  expect(layersOf('ffn_down')).toEqual([0, 3, 6, 7]);
  expect(layersOf('ffn_up')).toEqual([]);
  expect(types['blk.0.attn_norm.weight']).toBe('F32');
});

test.each([
  ['Q4_K_S', 'attn_v', [0, 1, 2, 3]],
  ['Q4_K_S', 'ffn_down', [0]],
  ['IQ4_XS', 'attn_v', [0, 1, 2, 3, 4, 5, 6, 7]],
  ['IQ4_XS', 'ffn_down', [0]],
] as const)('%s stores layers of %s in Q5_K', (mix, part, layers) => {
  const types = typesOf(openModel(), mix);
  expect([...Array(8).keys()].filter((layer) => types[`blk.${layer}.${part}.weight`] === 'Q5_K')).toEqual(layers);
});

test.each(['gemma3n', 'gemma4'] as const)('%s: keeps small matrices between streams and layers', (architecture) => {
  const file = buildRandomModel({ architecture, type: 'Q8_0', seed: 1, shape: { numLayers: 3 } });
  const gguf = openGguf(createMemorySource(file));
  const types = typesOf(gguf, 'Q4_0');
  const kept = [...gguf.tensors.keys()].filter((name) => /altup_|laurel_[lr]|per_layer_model_proj/.test(name));
  expect(kept.length).toBeGreaterThan(0);
  for (const name of kept) expect(types[name], name).toBe('F32');
  expect(types['blk.0.inp_gate.weight']).toBe('Q4_0');
  expect(types['blk.2.attn_q.weight']).toBe('Q4_0');
});

test('uses types with small blocks where columns are not a multiple of 256', () => {
  const types = typesOf(openModel({ embeddingDim: 96, feedForwardDim: 72 }), 'Q4_K_M');
  expect(types['output.weight']).toBe('Q8_0');
  expect(types['blk.1.attn_q.weight']).toBe('Q5_0');
  expect(types['blk.1.ffn_down.weight']).toBe('F16');
});

test('writes the source values in the planned types, with the metadata of the source', () => {
  // Matrices of more values than are decoded at a time.
  const gguf = openModel({ feedForwardDim: 4352, numLayers: 1 }, 'Q8_0');
  const plan = planRequantization(sourceFromGguf(gguf), 'Q4_0');
  const sink = createMemorySink();
  const progress: number[] = [];
  writeGguf(
    requantize(sourceFromGguf(gguf), 'Q4_0', plan, (_, doneBytes) => progress.push(doneBytes)),
    sink,
  );
  const result = openGguf(createMemorySource(sink.toBytes()));
  expect(progress.length).toBe(plan.length + 3);
  expect(result.metadata.number('general.file_type')).toBe(2);
  expect(result.metadata.string('general.architecture')).toBe('llama');
  for (const { tensor, type } of plan) {
    const written = result.tensor(tensor.name);
    expect([written.type, written.dims]).toEqual([type, tensor.dims]);
    const bytes = new Uint8Array(tensor.sizeBytes);
    gguf.readTensor(gguf.tensor(tensor.name), bytes);
    const values = new Float32Array(tensor.numElements);
    dequantizeRow(tensor.type, bytes, values, values.length);
    const stored = new Uint8Array(written.sizeBytes);
    result.readTensor(written, stored);
    expect(stored).toEqual(type === tensor.type ? bytes : quantizeRow(type, values));
  }
});

test('names the tensor whose values cannot be stored', () => {
  const bytes = buildRandomModel({ architecture: 'llama', type: 'F32', seed: 1, shape: SHAPE });
  const source = openGguf(createMemorySource(bytes));
  const { offset } = source.tensor('blk.2.ffn_up.weight');
  new DataView(bytes.buffer).setFloat32(offset, NaN, true);
  const tensors = sourceFromGguf(source);
  const file = requantize(tensors, 'Q8_0', planRequantization(tensors, 'Q8_0'));
  expect(() => writeGguf(file, createMemorySink())).toThrow(RuvLLMError);
  expect(() => writeGguf(file, createMemorySink())).toThrow(/blk\.2\.ffn_up\.weight: value NaN at index 0/);
});

test('mixes of two bits keep tables, values and the first layers of ffn_down in more', () => {
  const types = typesOf(openModel(), 'IQ2_XXS');
  expect(types['output.weight']).toBe('Q5_K');
  expect(types['token_embd.weight']).toBe('Q2_K');
  expect(types['blk.3.attn_v.weight']).toBe('Q4_K');
  expect([types['blk.0.ffn_down.weight'], types['blk.3.ffn_down.weight']]).toEqual(['Q2_K', 'IQ2_XXS']);
  expect(types['blk.3.attn_q.weight']).toBe('IQ2_XXS');
  expect(typesOf(openModel(), 'IQ3_XXS')['blk.3.attn_q.weight']).toBe('IQ2_S');
  expect(typesOf(openModel(), 'Q2_K')['blk.3.attn_output.weight']).toBe('Q3_K');
});
