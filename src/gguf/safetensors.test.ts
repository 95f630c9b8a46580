import { describe, expect, test } from 'vitest';
import { createMemorySource } from '../core/byte-source.ts';
import { RuvLLMError } from '../core/errors.ts';
import { openSafetensors, type SafetensorsFile } from './safetensors.ts';

/** A file with this header (an object or its text) and `dataBytes` bytes 0, 1, 2, … of data. */
function build(header: object | string, dataBytes = 0, lengthField?: bigint): Uint8Array<ArrayBuffer> {
  const json = new TextEncoder().encode(typeof header === 'string' ? header : JSON.stringify(header));
  const bytes = new Uint8Array(8 + json.length + dataBytes);
  new DataView(bytes.buffer).setBigUint64(0, lengthField ?? BigInt(json.length), true);
  bytes.set(json, 8);
  for (let i = 0; i < dataBytes; i++) bytes[8 + json.length + i] = i;
  return bytes;
}

const open = (bytes: Uint8Array): SafetensorsFile => openSafetensors(createMemorySource(bytes, 'm.safetensors'));

function failure(bytes: Uint8Array): string {
  try {
    open(bytes);
  } catch (error) {
    if (error instanceof RuvLLMError) return `${error.code}: ${error.message}`;
    throw error;
  }
  return 'opened';
}

const tensor = (dtype: string, shape: unknown, ...range: unknown[]) => ({ dtype, shape, data_offsets: range });
const valid = build(
  {
    __metadata__: { format: 'pt' },
    b: tensor('F16', [2, 3], 4, 16),
    a: tensor('F32', [], 0, 4),
    e: tensor('U8', [0], 16, 16),
  },
  16,
);

test('returns the tensors of a valid file and reads them by range', () => {
  const file = open(valid);
  expect(file.metadata).toEqual(new Map([['format', 'pt']]));
  expect([...file.tensors.keys()]).toEqual(['b', 'a', 'e']);
  const info = file.tensor('b');
  expect(info).toEqual({
    name: 'b',
    dtype: 'F16',
    shape: [2, 3],
    numElements: 6,
    sizeBytes: 12,
    offset: valid.length - 12,
  });
  const bytes = new Uint8Array(4);
  file.readTensor(info, bytes, 8);
  expect([...bytes]).toEqual([12, 13, 14, 15]);
  expect(() => file.readTensor(info, bytes, 9)).toThrow('cannot read 4 bytes at byte 9 of tensor "b", which has 12');
  expect(() => file.tensor('c')).toThrow('tensor "c" is missing');
});

test('rejects a file cut at any byte or one byte longer', () => {
  for (let length = 0; length < valid.length; length++) {
    expect(failure(valid.subarray(0, length)), `first ${length} bytes`).toMatch(/^invalid_model_file: /);
  }
  expect(failure(Uint8Array.of(...valid, 0))).toMatch(/the tensors end at byte \d+, the file has/);
});

test('opens a file with any one bit flipped or reports a typed error', () => {
  for (let bit = 0; bit < valid.length * 8; bit++) {
    const bytes = valid.slice();
    bytes[bit >> 3]! ^= 1 << (bit & 7);
    failure(bytes);
  }
});

describe('false claims', () => {
  test.each<[string, Uint8Array, RegExp]>([
    [
      'a header of 2^64-1 bytes',
      build({}, 0, 2n ** 64n - 1n),
      /^invalid_model_file: .*header of 18446744073709551615 bytes at byte 0, the file has 10/,
    ],
    ['a header past the end', build({}, 0, 3n), /^invalid_model_file: .*header of 3 bytes/],
    ['a header of 0 bytes', build('', 4), /^invalid_model_file: .*does not start with/],
    ['a list', build('[]'), /^invalid_model_file: .*does not start with/],
    ['invalid JSON', build('{"a":'), /^invalid_model_file: .*not valid JSON/],
    ['invalid UTF-8', Uint8Array.of(2, 0, 0, 0, 0, 0, 0, 0, 0x7b, 0xff), /^invalid_model_file: .*not valid UTF-8/],
    ['deep nesting', build(`{"a":${'['.repeat(100_000)}`), /^invalid_model_file: .*nests deeper than 3/],
    [
      'a duplicate tensor',
      build(
        '{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"a":{"dtype":"I8","shape":[1],"data_offsets":[0,1]}}',
        1,
      ),
      /^invalid_model_file: .*duplicate key/,
    ],
    [
      'a duplicate field',
      build('{"a":{"dtype":"U8","dtype":"I8","shape":[1],"data_offsets":[0,1]}}', 1),
      /^invalid_model_file: .*duplicate key/,
    ],
    ['metadata that is a list', build({ __metadata__: [] }), /^invalid_model_file: .*__metadata__/],
    [
      'metadata of numbers',
      build({ __metadata__: { a: 1 } }),
      /^invalid_model_file: .*__metadata__ must map strings to strings; "a" does not/,
    ],
    ['a tensor that is a number', build({ a: 1 }), /^invalid_model_file: .*tensor "a" must be described by an object/],
    [
      'no dtype',
      build({ a: { shape: [1], data_offsets: [0, 1] } }, 1),
      /^invalid_model_file: .*tensor "a" has no dtype/,
    ],
    ['an unknown dtype', build({ a: tensor('F4', [1], 0, 1) }, 1), /^unsupported: .*tensor "a" has dtype "F4"/],
    ['a dtype from the prototype', build({ a: tensor('constructor', [1], 0, 1) }, 1), /^unsupported: .*"constructor"/],
    [
      'an unknown field',
      build({ a: { ...tensor('U8', [1], 0, 1), x: 1 } }, 1),
      /^invalid_model_file: .*unknown field "x"/,
    ],
    ['a negative dimension', build({ a: tensor('U8', [-1], 0, 1) }, 1), /^invalid_model_file: .*no shape/],
    ['a fractional dimension', build({ a: tensor('U8', [0.5], 0, 1) }, 1), /^invalid_model_file: .*no shape/],
    ['a shape that is a number', build({ a: tensor('U8', 1, 0, 1) }, 1), /^invalid_model_file: .*no shape/],
    [
      'a product beyond 2^53',
      build({ a: tensor('U8', [2 ** 40, 2 ** 40], 0, 1) }, 1),
      /^invalid_model_file: .*more than 2\^53 bytes/,
    ],
    ['three offsets', build({ a: tensor('U8', [1], 0, 1, 1) }, 1), /^invalid_model_file: .*no pair of data_offsets/],
    ['offsets in reverse', build({ a: tensor('U8', [1], 1, 0) }, 1), /^invalid_model_file: .*spans bytes 1 to 0/],
    [
      'a size that does not match its shape',
      build({ a: tensor('F32', [2], 0, 4) }, 4),
      /^invalid_model_file: .*spans bytes 0 to 4, but 2 of F32 are 8 bytes/,
    ],
    [
      'an end past the file',
      build({ a: tensor('U8', [9], 0, 9) }, 8),
      /^invalid_model_file: .*tensor "a" ends at byte \d+, the file has/,
    ],
    [
      'a gap',
      build({ a: tensor('U8', [1], 0, 1), b: tensor('U8', [1], 2, 3) }, 3),
      /^invalid_model_file: .*tensor "b" at byte \d+ leaves a gap/,
    ],
    [
      'an overlap',
      build({ a: tensor('U8', [2], 0, 2), b: tensor('U8', [2], 1, 3) }, 3),
      /^invalid_model_file: .*tensor "b" at byte \d+ overlaps/,
    ],
  ])('%s', (_what, bytes, expected) => {
    expect(failure(bytes)).toMatch(expected);
  });

  test('accepts the header limit as an option', () => {
    const source = createMemorySource(valid);
    expect(() => openSafetensors(source, { maxHeaderBytes: 20 })).toThrow('the limit is 20');
    expect(() => openSafetensors(source, { max: 1 } as object)).toThrow('unknown option "max"');
  });

  test('does not take a colon or brace inside a name for structure', () => {
    const name = 'a:{"\\[[[[';
    expect([...open(build({ [name]: tensor('U8', [1], 0, 1) }, 1)).tensors.keys()]).toEqual([name]);
  });
});
