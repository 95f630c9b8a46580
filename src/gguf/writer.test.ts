import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createMemorySource } from '../core/byte-source.ts';
import type { TensorTypeName } from '../core/tensor-type.ts';
import { quantFormats } from '../quant/index.ts';
import { createMemorySink } from './header-writer.ts';
import { openGguf } from './reader.ts';
import type { MetadataEntry, MetadataTypeName, MetadataValue } from './types.ts';
import { type GgufToWrite, type TensorToWrite, writeGguf } from './writer.ts';

function bytesOf(file: GgufToWrite): Uint8Array<ArrayBuffer> {
  const sink = createMemorySink();
  writeGguf(file, sink);
  return sink.toBytes();
}

const text = fc.string({ unit: 'grapheme', maxLength: 80 });
const entry = <T extends MetadataValue>(type: MetadataTypeName, value: fc.Arbitrary<T>): fc.Arbitrary<MetadataEntry> =>
  fc.record({ key: fc.string({ unit: 'grapheme', minLength: 1 }), type: fc.constant(type), value });
const anyEntry = fc.oneof(
  entry('u8', fc.integer({ min: 0, max: 255 })),
  entry('i8', fc.integer({ min: -128, max: 127 })),
  entry('u16', fc.integer({ min: 0, max: 65_535 })),
  entry('i16', fc.integer({ min: -32_768, max: 32_767 })),
  entry('u32', fc.integer({ min: 0, max: 2 ** 32 - 1 })),
  entry('i32', fc.integer()),
  entry('f32', fc.float()),
  entry('f64', fc.double()),
  entry('bool', fc.boolean()),
  entry('string', text),
  entry('u64', fc.oneof(fc.maxSafeNat(), fc.bigInt({ min: 2n ** 53n, max: 2n ** 64n - 1n }))),
  entry('i64', fc.oneof(fc.maxSafeInteger(), fc.bigInt({ min: -(2n ** 63n), max: -(2n ** 53n) }))),
  entry('array<string>', fc.array(text)),
  entry('array<bool>', fc.array(fc.boolean())),
  entry('array<u8>', fc.uint8Array()),
  entry('array<i8>', fc.int8Array()),
  entry('array<u16>', fc.uint16Array()),
  entry('array<i16>', fc.int16Array()),
  entry('array<u32>', fc.uint32Array()),
  entry('array<i32>', fc.int32Array()),
  entry('array<f32>', fc.float32Array()),
  entry('array<f64>', fc.float64Array()),
  entry('array<u64>', fc.bigUint64Array()),
  entry('array<i64>', fc.bigInt64Array()),
  entry('array<array>', fc.array(fc.oneof(fc.uint8Array(), fc.array(text), fc.array(fc.array(fc.boolean()))))),
);
const anyTensor: fc.Arbitrary<TensorToWrite & { data: Uint8Array }> = fc
  .record({
    name: fc.string({ unit: 'grapheme', minLength: 1, maxLength: 20 }),
    type: fc.constantFrom(...(Object.keys(quantFormats) as TensorTypeName[])),
    numBlocks: fc.integer({ min: 1, max: 3 }),
    rest: fc.array(fc.integer({ min: 1, max: 3 }), { maxLength: 3 }),
    fill: fc.nat(255),
  })
  .map(({ name, type, numBlocks, rest: outerDims, fill }) => {
    const { blockSize, blockBytes } = quantFormats[type];
    const sizeBytes = outerDims.reduce((product, dim) => product * dim, numBlocks * blockBytes);
    return { name, type, dims: [numBlocks * blockSize, ...outerDims], data: new Uint8Array(sizeBytes).fill(fill) };
  });

test('reads back the same content and writes the same bytes again', () => {
  fc.assert(
    fc.property(
      fc.uniqueArray(anyEntry, { selector: ({ key }) => key, maxLength: 12 }),
      fc.uniqueArray(anyTensor, { selector: ({ name }) => name, maxLength: 5 }),
      fc.constantFrom(null, 8, 32, 4096),
      (entries, tensors, alignment) => {
        const metadata =
          alignment === null
            ? entries
            : [...entries, { key: 'general.alignment', type: 'u32', value: alignment } as const];
        const bytes = bytesOf({ metadata, tensors });
        const file = openGguf(createMemorySource(bytes));
        expect(file.version).toBe(3);
        expect(file.alignment).toBe(alignment ?? 32);
        expect(file.entries).toEqual(metadata);
        expect(file.metadata.keys).toEqual(metadata.map(({ key }) => key));
        expect([...file.tensors.keys()]).toEqual(tensors.map(({ name }) => name));
        const readBack = tensors.map((tensor) => {
          const info = file.tensor(tensor.name);
          expect(info).toMatchObject({ type: tensor.type, dims: tensor.dims, sizeBytes: tensor.data.length });
          const data = new Uint8Array(info.sizeBytes);
          file.readTensor(info, data);
          return { ...info, data };
        });
        expect(readBack.map(({ data }) => data)).toEqual(tensors.map(({ data }) => data));
        expect(bytesOf({ metadata: file.entries, tensors: readBack })).toEqual(bytes);
      },
    ),
    { numRuns: 50 },
  );
});

test('writes exactly these bytes for the smallest file', () => {
  const bytes = bytesOf({ metadata: [{ key: 'k', type: 'u8', value: 5 }], tensors: [] });
  const fields = [
    3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 107, 0, 0, 0, 0, 5,
  ];
  const padding = Array.from({ length: 26 }, () => 0);
  expect([...bytes]).toEqual([71, 71, 85, 70, ...fields, ...padding]);
});

test('accepts data in chunks from one reused buffer', () => {
  const buffer = new Uint8Array(4);
  function* pieces(): Iterable<Uint8Array> {
    for (let i = 1; i <= 4; i++) yield buffer.fill(i);
  }
  const bytes = bytesOf({ metadata: [], tensors: [{ name: 't', type: 'F32', dims: [4], data: pieces }] });
  expect([...bytes.subarray(-32)]).toEqual([
    1,
    1,
    1,
    1,
    2,
    2,
    2,
    2,
    3,
    3,
    3,
    3,
    4,
    4,
    4,
    4,
    ...Array.from({ length: 16 }, () => 0),
  ]);
});

describe('rejects', () => {
  const tensor = { name: 't', type: 'F32', dims: [4], data: new Uint8Array(16) } as const;
  const loop: MetadataValue[] = [];
  loop.push(loop as unknown as MetadataValue);
  test.each<[string, readonly unknown[], readonly TensorToWrite[], string]>([
    ['u8 256', [{ key: 'k', type: 'u8', value: 256 }], [], 'metadata key "k" must be u8, got 256'],
    ['u32 -1', [{ key: 'k', type: 'u32', value: -1 }], [], 'must be u32, got -1'],
    ['i32 0.5', [{ key: 'k', type: 'i32', value: 0.5 }], [], 'must be i32, got 0.5'],
    ['u64 -1', [{ key: 'k', type: 'u64', value: -1 }], [], 'must be u64, got -1'],
    ['u64 2^64', [{ key: 'k', type: 'u64', value: 2n ** 64n }], [], 'must be u64'],
    ['f32 of a string', [{ key: 'k', type: 'f32', value: '1' }], [], 'must be f32, got "1"'],
    ['bool of a number', [{ key: 'k', type: 'bool', value: 1 }], [], 'must be bool'],
    ['string of a number', [{ key: 'k', type: 'string', value: 1 }], [], 'must be string'],
    [
      'array of the wrong class',
      [{ key: 'k', type: 'array<u32>', value: Int32Array.of(1) }],
      [],
      'must be array<u32> (Uint32Array)',
    ],
    ['array of mixed values', [{ key: 'k', type: 'array<string>', value: ['a', 1] }], [], 'must be string, got 1'],
    ['array that is a string', [{ key: 'k', type: 'array<string>', value: 'abc' }], [], 'must be array<string>'],
    [
      'array that contains itself',
      [{ key: 'k', type: 'array<array>', value: loop }],
      [],
      'must be nested at most 4 deep',
    ],
    ['unknown type', [{ key: 'k', type: 'u128', value: 1 }], [], 'must be one of u8, i8'],
    ['lone surrogate', [{ key: 'k', type: 'string', value: 'a\ud800b' }], [], 'lone surrogate'],
    [
      'duplicate key',
      [
        { key: 'k', type: 'u8', value: 1 },
        { key: 'k', type: 'u8', value: 1 },
      ],
      [],
      'duplicated',
    ],
    ['alignment 3', [{ key: 'general.alignment', type: 'u32', value: 3 }], [], 'power of two'],
    ['duplicate tensor', [], [tensor, tensor], 'tensor name "t" is empty or duplicated'],
    ['zero dimension', [], [{ ...tensor, dims: [0] }], 'tensor "t" has a dimension of 0'],
    ['half a block', [], [{ ...tensor, type: 'Q4_0' }], "not a multiple of Q4_0's block of 32"],
    ['unknown tensor type', [], [{ ...tensor, type: 'Q9' as 'F32' }], 'element type "Q9"'],
  ])('%s', (_what, metadata, tensors, expected) => {
    let numWrites = 0;
    const write = (): void => {
      writeGguf({ metadata: metadata as MetadataEntry[], tensors }, { write: () => numWrites++ });
    };
    expect(write).toThrow(
      expect.objectContaining({ code: 'invalid_option', message: expect.stringContaining(expected) }),
    );
    expect(numWrites).toBe(0);
  });

  test('rejects data of another size', () => {
    const write = (data: TensorToWrite['data']) => () => bytesOf({ metadata: [], tensors: [{ ...tensor, data }] });
    expect(write(new Uint8Array(12))).toThrow('tensor "t": its data has only 12 of 16 bytes');
    expect(write(() => [new Uint8Array(16), new Uint8Array(1)])).toThrow('tensor "t": its data has more than 16 bytes');
  });
});
