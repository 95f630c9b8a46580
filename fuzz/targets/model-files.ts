import { createMemorySource, openGguf, openSafetensors } from '../../src/gguf/index.ts';
import { buildRandomModel } from '../../test/support/random-model.ts';
import { encode, type FuzzTarget } from '../target.ts';

/** Enough for all of the header and a part of the tensors: what counts is the header. */
const HEADER_BYTES = 16_384;

export const ggufTarget: FuzzTarget = {
  name: 'gguf',
  words: ['GGUF', 'general.architecture', 'general.alignment', 'tokenizer.ggml.tokens', 'llama.block_count', '\u0008\u0000\u0000\u0000'], // prettier-ignore
  seeds: () => [
    buildRandomModel({ architecture: 'llama', type: 'Q8_0', seed: 1 }).slice(0, HEADER_BYTES),
    buildRandomModel({ architecture: 'llama', type: 'F32', seed: 2 }).slice(0, HEADER_BYTES),
  ],
  run: (bytes) => openGguf(createMemorySource(bytes)),
};

const safetensors = (header: object, numBytes: number): Uint8Array => {
  const text = encode(JSON.stringify(header));
  const length = new Uint8Array(8);
  new DataView(length.buffer).setBigUint64(0, BigInt(text.length), true);
  return Buffer.concat([length, text, new Uint8Array(numBytes)]);
};

export const safetensorsTarget: FuzzTarget = {
  name: 'safetensors',
  words: [
    '"dtype":"F32"',
    '"shape":[2,3]',
    '"data_offsets":[0,24]',
    '__metadata__',
    '[]',
    '1e9',
    '-1',
    '18446744073709551615',
  ],
  seeds: () => [
    safetensors({ a: { dtype: 'F32', shape: [2, 3], data_offsets: [0, 24] } }, 24),
    safetensors({ __metadata__: { format: 'pt' }, a: { dtype: 'BF16', shape: [4], data_offsets: [0, 8] }, b: { dtype: 'I64', shape: [], data_offsets: [8, 16] } }, 16), // prettier-ignore
  ],
  run: (bytes) => openSafetensors(createMemorySource(bytes)),
};
