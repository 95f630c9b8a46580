import { expect, test } from 'vitest';
import { createMemorySource } from '../core/byte-source.ts';
import { createMemorySink, type GgufFile, openGguf, type TensorToWrite, writeGguf } from '../gguf/index.ts';
import { createReferencePackFactory } from '../kernels/reference/reference-pack.ts';
import { createWeightLoader } from './weight-loader.ts';
import { createBillingSink, createPackSink } from './weight-sinks.ts';

const values = (length: number, start: number): Float32Array => Float32Array.from({ length }, (_, i) => start + i);
const tensor = (name: string, dims: number[], data: Float32Array): TensorToWrite => ({
  name,
  type: 'F32',
  dims,
  data: new Uint8Array(data.slice().buffer),
});

function openWith(...tensors: TensorToWrite[]): GgufFile {
  const sink = createMemorySink();
  writeGguf({ metadata: [], tensors }, sink);
  return openGguf(createMemorySource(sink.toBytes()));
}

test('splits a stacked matrix and its bias into the requested parts, row by row', async () => {
  const gguf = openWith(tensor('qkv.weight', [3, 6], values(18, 0)), tensor('qkv.bias', [6], values(6, 100)));
  const pack = await createReferencePackFactory().create({ arenaBytes: 4096, numThreads: 1, maxTokens: 1, maxCols: 3 });
  const loader = createWeightLoader(
    gguf,
    createPackSink(pack, () => {}),
  );
  const parts = loader.splitProjection('qkv', [3, 1, 2], 3, ['q', 'k', 'v']);
  const read = parts.map(({ weight, bias }) => ({
    shape: [weight.numRows, weight.numCols],
    weight: [...pack.arena.f32(weight.offset, weight.numRows * 3)],
    bias: [...pack.arena.f32(bias!, weight.numRows)],
  }));
  expect(read).toEqual([
    { shape: [3, 3], weight: [0, 1, 2, 3, 4, 5, 6, 7, 8], bias: [100, 101, 102] },
    { shape: [1, 3], weight: [9, 10, 11], bias: [103] },
    { shape: [2, 3], weight: [12, 13, 14, 15, 16, 17], bias: [104, 105] },
  ]);
});

test('the estimate counts aligned bytes, bytes to read and the widest matrix', () => {
  const gguf = openWith(tensor('a.weight', [3, 6], values(18, 0)), tensor('b', [20], values(20, 0)));
  const sink = createBillingSink(createReferencePackFactory());
  const loader = createWeightLoader(gguf, sink);
  expect(loader.projection('a', 6, 3).bias).toBeNull();
  loader.vector('b', 20);
  expect(sink.bill()).toEqual({
    arenaBytes: 128 + 128,
    fileBytes: 72,
    maxCols: 3,
    weights: [
      { name: 'a.weight', type: 'F32', numRows: 6, numCols: 3, offset: 0, sizeBytes: 72 },
      { name: 'b', type: null, numRows: 1, numCols: 20, offset: 128, sizeBytes: 80 },
    ],
  });
});

test('accepts a shape with trailing ones and no other difference', () => {
  const gguf = openWith(tensor('a', [3, 2, 1], values(6, 0)), tensor('b', [3], values(3, 0)));
  const loader = createWeightLoader(gguf, createBillingSink(createReferencePackFactory()));
  expect(loader.matrix('a', 2, 3)).toMatchObject({ numRows: 2, numCols: 3 });
  for (const read of [
    () => loader.matrix('a', 3, 2),
    () => loader.matrix('b', 1, 3),
    () => loader.vector('b', 2),
    () => loader.splitProjection('none', [1], 1, ['none']),
  ]) {
    expect(read).toThrowError(expect.objectContaining({ code: 'invalid_model_file' }));
  }
  expect(() => loader.vector('b', 2)).toThrowError('tensor b has shape [3], the model requires [2]');
});
