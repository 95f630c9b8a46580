import { expect, test } from 'vitest';
import { randomAdapter, SMALL_BASE } from '../../test/support/random-adapter.ts';
import { createMemorySink, createMemorySource, type GgufToWrite, openGguf, writeGguf } from '../gguf/index.ts';
import { type Adapter, type AdapterBase, createAdapter, describeAdapterFile, readGgufAdapter } from './index.ts';

function readBack(file: GgufToWrite, base: AdapterBase = SMALL_BASE): Promise<Adapter> {
  const sink = createMemorySink();
  writeGguf(file, sink);
  return readGgufAdapter(openGguf(createMemorySource(sink.toBytes(), 'a.gguf')), base);
}

const write = async (): Promise<GgufToWrite> => describeAdapterFile(await randomAdapter(SMALL_BASE, { seed: 1 }));

test('reads back the same adapter with the same hash', async () => {
  const adapter = await randomAdapter(SMALL_BASE, { seed: 1, rank: 3 });
  expect(await readBack(describeAdapterFile(adapter))).toEqual(adapter);
});

test('writes a file that computes the same if scales differ', async () => {
  const { factors } = await randomAdapter(SMALL_BASE, { seed: 1 });
  const uneven = await createAdapter(
    'llama',
    factors.map((factor, i) => ({ ...factor, scale: i + 1 })),
  );
  const back = await readBack(describeAdapterFile(uneven));
  back.factors.forEach((factor, i) => {
    const { b, scale } = uneven.factors[i]!;
    factor.b.forEach((value, at) => expect(value * factor.scale).toBeCloseTo(b[at]! * scale, 5));
  });
});

test('treats an alpha of 0, or none, as unscaled', async () => {
  const file = await write();
  const without = file.metadata.filter(({ key }) => key !== 'adapter.lora.alpha');
  const zero = { key: 'adapter.lora.alpha', type: 'f32', value: 0 } as const;
  for (const metadata of [without, [...without, zero]]) {
    const { factors } = await readBack({ ...file, metadata });
    expect(new Set(factors.map(({ scale }) => scale))).toEqual(new Set([1]));
  }
});

test('splits stacked matrices', async () => {
  const file = await write();
  const dims = (name: string, [cols, rows]: [number, number]) => {
    const values = Float32Array.from({ length: cols * rows }, (_, i) => i);
    return { name, type: 'F32' as const, dims: [cols, rows], data: new Uint8Array(values.buffer) };
  };
  const { factors } = await readBack({
    ...file,
    tensors: [
      dims('blk.1.attn_qkv.weight.lora_a', [16, 2]),
      dims('blk.1.attn_qkv.weight.lora_b', [2, 16 + 8 + 8]),
      dims('blk.0.ffn_up.weight.lora_a', [16, 2]),
      dims('blk.0.ffn_up.weight.lora_b', [2, 48]),
    ],
  });
  expect(factors.map(({ layer, target, numRows, b }) => [layer, target, numRows, b[0]])).toEqual([
    [0, 'ffn_gate', 24, 0],
    [0, 'ffn_up', 24, 48],
    [1, 'attn_q', 16, 0],
    [1, 'attn_k', 8, 32],
    [1, 'attn_v', 8, 48],
  ]);
  expect(new Set(factors.map(({ a }) => a.join())).size).toBe(1);
});

const entry =
  (key: string, value: string) =>
  (file: GgufToWrite): GgufToWrite => ({
    ...file,
    metadata: file.metadata.map((old) => (old.key === key ? { key, type: 'string', value } : old)),
  });
const renamed =
  (from: string, to: string) =>
  (file: GgufToWrite): GgufToWrite => ({
    ...file,
    tensors: file.tensors.map((tensor) => (tensor.name === from ? { ...tensor, name: to } : tensor)),
  });

test.each<[string, (file: GgufToWrite) => GgufToWrite, string, RegExp]>([
  ['a model', entry('general.type', 'model'), 'invalid_model_file', /a\.gguf is not an adapter/],
  ['a control vector', entry('adapter.type', 'control'), 'unsupported', /adapters of type "control"/],
  [
    'another architecture',
    entry('general.architecture', 'gemma2'),
    'invalid_model_file',
    /for gemma2, the model is llama/,
  ],
  [
    'half a pair',
    (file) => ({ ...file, tensors: file.tensors.slice(1) }),
    'invalid_model_file',
    /attn_q\.weight\.lora_a is missing/,
  ],
  [
    'a norm',
    renamed('blk.0.attn_q.weight.lora_a', 'blk.0.attn_norm.weight'),
    'unsupported',
    /attn_norm\.weight is not a factor/,
  ],
  [
    'embeddings',
    (file) =>
      renamed(
        'output.weight.lora_a',
        'token_embd.weight.lora_a',
      )(renamed('output.weight.lora_b', 'token_embd.weight.lora_b')(file)),
    'unsupported',
    /adapters of token_embd are not supported/,
  ],
])('rejects %s', async (_name, change, code, message) => {
  const reading = readBack(change(await write()));
  await expect(reading).rejects.toThrow(message);
  await expect(reading).rejects.toMatchObject({ code });
});

test('rejects a matrix of another model before reading it, and names both shapes', async () => {
  const file = await write();
  await expect(readBack(file, { ...SMALL_BASE, vocabSize: 41 })).rejects.toMatchObject({
    code: 'invalid_model_file',
    message: 'output changes a matrix of 40 x 16, the model has 41 x 16',
    data: { shape: '40 x 16', expected: '41 x 16' },
  });
  await expect(readBack(file, { ...SMALL_BASE, numLayers: 1 })).rejects.toThrow(
    /is in layer 1, the model has 1 layers/,
  );
});
