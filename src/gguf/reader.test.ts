import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { createMemorySource } from '../core/byte-source.ts';
import { RuvLLMError } from '../core/errors.ts';
import { createMemorySink } from './header-writer.ts';
import { openGguf } from './reader.ts';
import type { GgufFile, MetadataEntry } from './types.ts';
import { type TensorToWrite, writeGguf } from './writer.ts';

function write(metadata: readonly MetadataEntry[], tensors: readonly TensorToWrite[] = []): Uint8Array<ArrayBuffer> {
  const sink = createMemorySink();
  writeGguf({ metadata, tensors }, sink);
  return sink.toBytes();
}

const open = (bytes: Uint8Array): GgufFile => openGguf(createMemorySource(bytes, 'test.gguf'));

/** The error on opening as "code: message"; other exceptions fail the test. */
function failure(bytes: Uint8Array): string {
  try {
    open(bytes);
  } catch (error) {
    if (error instanceof RuvLLMError) return `${error.code}: ${error.message}`;
    throw error;
  }
  return 'opened';
}

const floats = (...values: number[]): Uint8Array => new Uint8Array(Float32Array.from(values).buffer);
const tiny = write(
  [
    { key: 'general.architecture', type: 'string', value: 'llama' },
    { key: 'a', type: 'array<string>', value: ['x', 'Ġé', '日本', '😀'] },
    { key: 'b', type: 'array<i32>', value: Int32Array.of(-1, 2) },
    { key: 'n', type: 'array<array>', value: [Uint8Array.of(1), ['s'], [Float32Array.of(0.5)]] },
    { key: 'f', type: 'bool', value: true },
    { key: 'u', type: 'u64', value: 2n ** 60n },
  ],
  [
    { name: 'w', type: 'F32', dims: [2, 2], data: floats(1, 2, 3, 4) },
    { name: 'q', type: 'Q8_0', dims: [32], data: new Uint8Array(34).fill(7) },
  ],
);

describe('raw headers', () => {
  type Part = number | bigint | string | readonly number[];
  /** number: u32; bigint: u64; string: u64 length and bytes; list: raw bytes. */
  function raw(...parts: Part[]): Uint8Array {
    const bytes: number[] = [];
    const number = (value: bigint, size: number): void => {
      for (let i = 0; i < size; i++) bytes.push(Number((value >> BigInt(8 * i)) & 0xffn));
    };
    for (const part of parts) {
      if (typeof part === 'number') number(BigInt(part), 4);
      else if (typeof part === 'bigint') number(part, 8);
      else if (typeof part === 'string') {
        const encoded = new TextEncoder().encode(part);
        number(BigInt(encoded.length), 8);
        bytes.push(...encoded);
      } else bytes.push(...part);
    }
    return Uint8Array.from(bytes);
  }
  const GGUF = [0x47, 0x47, 0x55, 0x46];
  const start = (numTensors: bigint, numPairs: bigint): Part[] => [GGUF, 3, numTensors, numPairs];
  /** Makes the counts fit in the file. */
  const slack = Array.from({ length: 64 }, () => 0);
  const tensor = (name: string, dims: bigint[], type: number, offset: bigint): Part[] => [
    name,
    dims.length,
    ...dims,
    type,
    offset,
  ];
  const withTensors = (...tensors: Part[][]): Uint8Array =>
    raw(
      ...start(BigInt(tensors.length), 0n),
      ...tensors.flat(),
      Array.from({ length: 256 }, () => 0),
    );

  test.each<[string, Uint8Array, RegExp]>([
    ['an empty file', raw(), /^invalid_model_file: test.gguf: magic needs 4 bytes at byte 0, the file has 0$/],
    [
      'another format',
      raw([0x50, 0x4b, 3, 4], slack),
      /^invalid_model_file: .*not a GGUF file: it starts with 0x04034b50/,
    ],
    ['the format before GGUF', raw([0x74, 0x6a, 0x67, 0x67], slack), /^unsupported: .*GGJT/],
    ['version 1', raw(GGUF, 1, slack), /^unsupported: .*GGUF version 1;/],
    ['version 4', raw(GGUF, 4, slack), /^unsupported: .*GGUF version 4;/],
    ['version 0', raw(GGUF, 0, slack), /^unsupported: .*GGUF version 0;/],
    ['big endian', raw(GGUF, 0x03000000, slack), /^unsupported: .*big-endian/],
    [
      '2^64-1 tensors',
      raw(...start(2n ** 64n - 1n, 0n)),
      /^invalid_model_file: .*declares 18446744073709552000 tensors at byte 8/,
    ],
    [
      '2^40 pairs',
      raw(...start(0n, 2n ** 40n)),
      /^invalid_model_file: .*declares 1099511627776 metadata entries at byte 16/,
    ],
    [
      '60,000 pairs in a small file',
      raw(...start(0n, 60_000n), slack),
      /^invalid_model_file: .*needs 780000 bytes at byte 24, the file has 88$/,
    ],
    [
      '60,000 tensors in a small file',
      raw(...start(60_000n, 0n), slack),
      /^invalid_model_file: .*needs 1920000 bytes at byte 24/,
    ],
    [
      'a key of 2^63 bytes',
      raw(...start(0n, 1n), 2n ** 63n, slack),
      /^invalid_model_file: .*metadata key 0 at byte 24 is 9223372036854776000 bytes long, the limit is 65535/,
    ],
    [
      'a key past the end',
      raw(...start(0n, 1n), 100n, slack),
      /^invalid_model_file: .*metadata key 0 needs 100 bytes at byte 32, the file has 96$/,
    ],
    ['an empty key', raw(...start(0n, 1n), '', slack), /^invalid_model_file: .*metadata key "" at byte 24 is empty/],
    [
      'a key that is not UTF-8',
      raw(...start(0n, 1n), 2n, [0xc3, 0x28], slack),
      /^invalid_model_file: .*metadata key 0 at byte 24 is not valid UTF-8/,
    ],
    [
      'a duplicate key',
      raw(...start(0n, 2n), 'k', 7, [1], 'k', 7, [1], slack),
      /^invalid_model_file: .*metadata key "k" at byte 38 is duplicated/,
    ],
    [
      'value type 13',
      raw(...start(0n, 1n), 'k', 13, slack),
      /^invalid_model_file: .*"k": unknown value type 13 at byte 33/,
    ],
    [
      'a bool of 2',
      raw(...start(0n, 1n), 'k', 7, [2], slack),
      /^invalid_model_file: .*"k": byte 37 is 2, a bool must be 0 or 1/,
    ],
    [
      'a string of 2^40 bytes',
      raw(...start(0n, 1n), 'k', 8, 2n ** 40n, slack),
      /^invalid_model_file: .*"k" at byte 37 is 1099511627776 bytes long/,
    ],
    [
      'a string past the end',
      raw(...start(0n, 1n), 'k', 8, 1000n, slack),
      /^invalid_model_file: .*"k" needs 1000 bytes at byte 45, the file has 109$/,
    ],
    [
      'a string that is not UTF-8',
      raw(...start(0n, 1n), 'k', 8, 3n, [0xed, 0xa0, 0x80], slack),
      /^invalid_model_file: .*"k" at byte 37 is not valid UTF-8/,
    ],
    [
      'an array of 2^40 strings',
      raw(...start(0n, 1n), 'k', 9, 8, 2n ** 40n, slack),
      /^invalid_model_file: .*"k" at byte 37: 1099511627776 elements/,
    ],
    [
      '4 million strings in a small file',
      raw(...start(0n, 1n), 'k', 9, 8, 4_000_000n, slack),
      /^invalid_model_file: .*"k" \(array of 4000000\) needs 32000000 bytes at byte 49/,
    ],
    [
      '4 million f64 values in a small file',
      raw(...start(0n, 1n), 'k', 9, 12, 4_000_000n, slack),
      /^invalid_model_file: .*"k" \(array of 4000000\) needs 32000000 bytes/,
    ],
    [
      '4 million arrays in a small file',
      raw(...start(0n, 1n), 'k', 9, 9, 4_000_000n, slack),
      /^invalid_model_file: .*"k" \(array of 4000000\) needs 48000000 bytes/,
    ],
    [
      'arrays five deep',
      raw(...start(0n, 1n), 'k', 9, ...Array.from({ length: 4 }, () => [9, 1n]).flat(), 4, 0n, slack),
      /^invalid_model_file: .*"k" at byte 85: arrays nested deeper than 4/,
    ],
    [
      'an array of type 99',
      raw(...start(0n, 1n), 'k', 9, 99, 0n, slack),
      /^invalid_model_file: .*"k": unknown value type 99 at byte 37/,
    ],
    [
      'alignment 0',
      raw(...start(0n, 1n), 'general.alignment', 4, 0, slack),
      /^invalid_model_file: .*"general.alignment" must be a u32 power of two from 8 to 65536, got u32 0/,
    ],
    ['alignment 4', raw(...start(0n, 1n), 'general.alignment', 4, 4, slack), /^invalid_model_file: .*got u32 4/],
    ['alignment 24', raw(...start(0n, 1n), 'general.alignment', 4, 24, slack), /^invalid_model_file: .*got u32 24/],
    [
      'alignment 2^31',
      raw(...start(0n, 1n), 'general.alignment', 4, 2 ** 31, slack),
      /^invalid_model_file: .*got u32 2147483648/,
    ],
    [
      'alignment as a string',
      raw(...start(0n, 1n), 'general.alignment', 8, '32', slack),
      /^invalid_model_file: .*got string "32"/,
    ],
    [
      'alignment as an array',
      raw(...start(0n, 1n), 'general.alignment', 9, 4, 1n, 32, slack),
      /^invalid_model_file: .*got array<u32>/,
    ],
    [
      'no dimension',
      withTensors(['t', 0, 0, 0n]),
      /^invalid_model_file: .*tensor "t" \(described at byte 24\) has 0 dimensions/,
    ],
    [
      'five dimensions',
      withTensors(tensor('t', [1n, 1n, 1n, 1n, 1n], 0, 0n)),
      /^invalid_model_file: .*tensor "t" .*has 5 dimensions/,
    ],
    [
      '2^32-1 dimensions',
      withTensors(['t', 2 ** 32 - 1]),
      /^invalid_model_file: .*tensor "t" .*has 4294967295 dimensions/,
    ],
    [
      'a zero dimension',
      withTensors(tensor('t', [4n, 0n], 0, 0n)),
      /^invalid_model_file: .*tensor "t" .*has a dimension of 0/,
    ],
    [
      'a product of 2^64',
      withTensors(tensor('t', [2n ** 32n, 2n ** 32n], 0, 0n)),
      /^invalid_model_file: .*tensor "t" .*has 4294967296 x 4294967296 elements, more than 2\^53 bytes/,
    ],
    [
      'a product that is 0 modulo 2^64',
      withTensors(tensor('t', [2n ** 63n, 2n], 0, 0n)),
      /^invalid_model_file: .*tensor "t" .*has a dimension of 9223372036854776000/,
    ],
    ['bytes beyond 2^53', withTensors(tensor('t', [2n ** 52n], 0, 0n)), /^invalid_model_file: .*more than 2\^53 bytes/],
    [
      'half a block',
      withTensors(tensor('t', [33n], 8, 0n)),
      /^invalid_model_file: .*tensor "t" .*has 33 columns, not a multiple of Q8_0's block of 32/,
    ],
    ['half blocks that add up', withTensors(tensor('t', [16n, 2n], 8, 0n)), /^invalid_model_file: .*has 16 columns/],
    ['an unknown type', withTensors(tensor('t', [32n], 31337, 0n)), /^unsupported: .*tensor "t" .*element type 31337/],
    [
      'a misaligned offset',
      withTensors(tensor('t', [4n], 0, 4n)),
      /^invalid_model_file: .*tensor "t" .*offset 4, not a multiple of the alignment 32/,
    ],
    [
      'an end past the file',
      withTensors(tensor('t', [1024n], 0, 0n)),
      /^invalid_model_file: .*tensor "t" .*ends at byte 4160, the file has 313/,
    ],
    [
      'an offset of 2^64-32',
      withTensors(tensor('t', [4n], 0, 2n ** 64n - 32n)),
      /^invalid_model_file: .*tensor "t" .*ends at byte 18446744073709552000/,
    ],
    [
      'overlapping tensors',
      withTensors(tensor('t', [16n], 0, 0n), tensor('u', [4n], 0, 32n)),
      /^invalid_model_file: .*tensor "u" starts at byte 128, inside tensor "t" \(bytes 96 to 160\)/,
    ],
    [
      'the same bytes twice',
      withTensors(tensor('t', [4n], 0, 0n), tensor('u', [4n], 0, 0n)),
      /^invalid_model_file: .*inside tensor/,
    ],
    [
      'a duplicate name',
      withTensors(tensor('t', [4n], 0, 0n), tensor('t', [4n], 0, 32n)),
      /^invalid_model_file: .*tensor "t" \(described at byte 57\) is duplicated/,
    ],
    ['an empty name', withTensors(tensor('', [4n], 0, 0n)), /^invalid_model_file: .*has an empty name/],
    [
      'a name that is not UTF-8',
      withTensors([1n, [0xff], 1, 4n, 0, 0n]),
      /^invalid_model_file: .*name of tensor 0 at byte 24 is not valid UTF-8/,
    ],
    [
      'a name of 300 bytes',
      withTensors(tensor('t'.repeat(300), [4n], 0, 0n)),
      /^invalid_model_file: .*name of tensor 0 at byte 24 is 300 bytes long, the limit is 256/,
    ],
  ])('%s', (_what, bytes, expected) => {
    expect(failure(bytes)).toMatch(expected);
  });

  test('keeps a hostile name from flooding or forging a message', () => {
    const message = failure(raw(...start(0n, 1n), `x\n${'k'.repeat(60_000)}`, 13, slack));
    expect(message.length).toBeLessThan(300);
    expect(message).not.toContain('\n');
  });

  test('counts empty inner arrays over the whole file', () => {
    const entry = { key: 'n', type: 'array<array>', value: Array.from({ length: 40_000 }, () => []) } as const;
    expect(failure(write([entry]))).toBe('opened');
    expect(failure(write([entry, { ...entry, key: 'm' }]))).toMatch(/"m" at byte \d+: more than 65536 nested arrays/);
  });
});

test('opens version 2', () => {
  const bytes = tiny.slice();
  bytes[4] = 2;
  expect(open(bytes).version).toBe(2);
});

test('reports a typed error for a file cut at any byte', () => {
  for (let length = 0; length < tiny.length; length++) {
    // Reading the last tensor does not need its padding.
    const expected = length >= tiny.length - 30 ? /^opened$/ : /^invalid_model_file: /;
    expect(failure(tiny.subarray(0, length)), `first ${length} bytes`).toMatch(expected);
  }
});

test('opens a file with any one bit flipped or reports a typed error', () => {
  const outcomes = new Map<string, number>();
  for (let bit = 0; bit < tiny.length * 8; bit++) {
    const bytes = tiny.slice();
    bytes[bit >> 3]! ^= 1 << (bit & 7);
    const outcome = failure(bytes).split(':')[0]!;
    outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
  }
  expect([...outcomes.keys()].sort()).toEqual(['invalid_model_file', 'opened', 'unsupported']);
});

test('reads tensors by range and never past their end', () => {
  const file = open(tiny);
  const tensor = file.tensor('w');
  expect(tensor).toMatchObject({ type: 'F32', dims: [2, 2], numElements: 4, sizeBytes: 16 });
  const target = new Uint8Array(8);
  file.readTensor(tensor, target, 8);
  expect([...new Float32Array(target.buffer)]).toEqual([3, 4]);
  expect(() => file.readTensor(tensor, target, 9)).toThrow('cannot read 8 bytes at byte 9 of tensor "w", which has 16');
  expect(() => file.readTensor(tensor, target, -1)).toThrow(RuvLLMError);
  expect(() => file.tensor('v')).toThrow('test.gguf: tensor "v" is missing');
});

test('accepts lower limits and rejects unknown ones', () => {
  const source = createMemorySource(tiny, 'test.gguf');
  expect(() => openGguf(source, { maxKeyBytes: 8 })).toThrow(
    'metadata key 0 at byte 24 is 20 bytes long, the limit is 8',
  );
  expect(() => openGguf(source, { maxHeaderBytes: 100 })).toThrow('the header limit is 100 bytes');
  expect(() => openGguf(source, { maxKeys: 1 } as object)).toThrow('unknown option "maxKeys"');
});

test('reads the header in windows, not as a whole', () => {
  const bytes = write(
    [{ key: 'a', type: 'u8', value: 1 }],
    [{ name: 'w', type: 'F32', dims: [1 << 20], data: new Uint8Array(4 << 20) }],
  );
  let bytesRead = 0;
  const source = createMemorySource(bytes);
  openGguf({
    ...source,
    readInto: (target, offset) => {
      bytesRead += target.byteLength;
      source.readInto(target, offset);
    },
  });
  expect(bytesRead).toBeLessThanOrEqual(256 * 1024);
});

const shared = fileURLToPath(new URL('../../../shared', import.meta.url));
const realFiles = ['models', 'suites/tokenizers']
  .map((folder) => join(shared, folder))
  .filter((folder) => existsSync(folder))
  .flatMap((folder) => readdirSync(folder).map((file) => join(folder, file)))
  .filter((file) => file.endsWith('.gguf'));
if (realFiles.length === 0) console.log('skipped: no real GGUF files beside the repository');

test.skipIf(realFiles.length === 0)('opens real files and writes the same bytes back', () => {
  for (const path of realFiles) {
    const bytes = new Uint8Array(readFileSync(path));
    const file = openGguf(createMemorySource(bytes, path));
    expect(file.metadata.string('general.architecture')).toMatch(/^[a-z0-9]+$/);
    expect(file.metadata.strings('tokenizer.ggml.tokens').length).toBeGreaterThan(500);
    const tensors = [...file.tensors.values()].map((tensor) => ({
      ...tensor,
      data: bytes.subarray(tensor.offset, tensor.offset + tensor.sizeBytes),
    }));
    const written = write(file.entries, tensors);
    expect(Buffer.compare(written.subarray(0, bytes.length), bytes), path).toBe(0);
  }
});
