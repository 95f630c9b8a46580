import { describe, expect, test } from 'vitest';
import { buildRandomVision, type RandomVisionOptions, VISION_SHAPE } from '../../test/support/random-vision.ts';
import { normals } from '../../test/support/random-values.ts';
import { createMemorySource } from '../core/byte-source.ts';
import { openGguf } from '../gguf/index.ts';
import type { KernelPackFactory } from '../kernels/contract.ts';
import { createNativePackFactory } from '../kernels/native/native-pack.ts';
import { createReferencePackFactory } from '../kernels/reference/reference-pack.ts';
import { createWasmPackFactory } from '../kernels/wasm/wasm-pack.ts';
import { loadNativeBuilds } from '../platform/node/kernels/native-addon.ts';
import { createNodeWasmPlatform } from '../platform/node/kernels/wasm-platform.ts';
import { openVisionEncoder } from './open-encoder.ts';

const { imageSize, patchSize, scaleFactor, dim, numHeads, ffn, epsilon } = VISION_SHAPE;
const grid = imageSize / patchSize;
const pixels = normals(3 * imageSize ** 2, 7);

const open = (factory: KernelPackFactory, options: RandomVisionOptions = {}) =>
  openVisionEncoder(openGguf(createMemorySource(buildRandomVision(options))), factory, { numThreads: 2 });

/** SigLIP and the projector of Idefics 3 as their papers define them, in double precision, sharing only the file with our code. */
function encodePlainly(bytes: Uint8Array, image: Float32Array): number[][] {
  const gguf = openGguf(createMemorySource(bytes));
  const read = (name: string): Float32Array => {
    const tensor = gguf.tensor(name);
    const data = new Uint8Array(tensor.sizeBytes);
    gguf.readTensor(tensor, data);
    return new Float32Array(data.buffer);
  };
  const module = (name: string, x: readonly number[], numRows: number): number[] => {
    const weight = read(`${name}.weight`);
    const bias = gguf.tensors.has(`${name}.bias`) ? read(`${name}.bias`) : new Float32Array(numRows);
    return Array.from({ length: numRows }, (_, r) =>
      x.reduce((sum, value, c) => sum + value * weight[r * x.length + c]!, bias[r]!),
    );
  };
  const normalize = (name: string, x: readonly number[]): number[] => {
    const [weight, bias] = [read(`${name}.weight`), read(`${name}.bias`)];
    const mean = x.reduce((sum, value) => sum + value, 0) / x.length;
    const variance = x.reduce((sum, value) => sum + (value - mean) ** 2, 0) / x.length;
    return x.map((value, i) => ((value - mean) / Math.sqrt(variance + epsilon)) * weight[i]! + bias[i]!);
  };
  const add = (x: readonly number[], y: readonly number[]): number[] => x.map((value, i) => value + y[i]!);
  const gelu = (x: number): number => 0.5 * x * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3)));

  // The convolution, written as one: out[o][py][px] = Σ kernel[o][c][ky][kx] · image[c][py·s + ky][px·s + kx].
  const kernel = read('v.patch_embd.weight');
  const kernelBias = read('v.patch_embd.bias');
  const positions = read('v.position_embd.weight');
  let rows: number[][] = [];
  for (let py = 0; py < grid; py++) {
    for (let px = 0; px < grid; px++) {
      const row = Array.from({ length: dim }, (_, o) => {
        let sum = kernelBias[o]! + positions[(py * grid + px) * dim + o]!;
        for (let c = 0; c < 3; c++) {
          for (let ky = 0; ky < patchSize; ky++) {
            for (let kx = 0; kx < patchSize; kx++) {
              const weight = kernel[((o * 3 + c) * patchSize + ky) * patchSize + kx]!;
              sum += weight * image[(c * imageSize + py * patchSize + ky) * imageSize + px * patchSize + kx]!;
            }
          }
        }
        return sum;
      });
      rows.push(row);
    }
  }
  const headDim = dim / numHeads;
  for (let layer = 0; gguf.tensors.has(`v.blk.${layer}.attn_q.weight`); layer++) {
    const block = `v.blk.${layer}`;
    const inputs = rows.map((x) => normalize(`${block}.ln1`, x));
    const [q, k, v] = ['attn_q', 'attn_k', 'attn_v'].map((name) =>
      inputs.map((x) => module(`${block}.${name}`, x, dim)),
    );
    rows = rows.map((x, t) => {
      const attended = Array.from({ length: dim }, () => 0);
      for (let head = 0; head < numHeads; head++) {
        const at = (i: number): number => head * headDim + i;
        const dot = (y: readonly number[]): number =>
          Array.from({ length: headDim }, (_, i) => q![t]![at(i)]! * y[at(i)]!).reduce((sum, value) => sum + value, 0);
        const weights = k!.map((key) => Math.exp(dot(key) / Math.sqrt(headDim)));
        const total = weights.reduce((sum, value) => sum + value, 0);
        for (let i = 0; i < headDim; i++) {
          attended[at(i)] = v!.reduce((sum, value, s) => sum + (weights[s]! / total) * value[at(i)]!, 0);
        }
      }
      return add(x, module(`${block}.attn_out`, attended, dim));
    });
    rows = rows.map((x) => {
      const hidden = module(`${block}.ffn_up`, normalize(`${block}.ln2`, x), ffn).map(gelu);
      return add(x, module(`${block}.ffn_down`, hidden, dim));
    });
  }
  rows = rows.map((x) => normalize('v.post_ln', x));
  // Pixel shuffle: the patches of a square, row by row.
  const small = grid / scaleFactor;
  return Array.from({ length: small ** 2 }, (_, i) => {
    const [top, left] = [Math.floor(i / small) * scaleFactor, (i % small) * scaleFactor];
    const joined: number[] = [];
    for (let dy = 0; dy < scaleFactor; dy++) {
      for (let dx = 0; dx < scaleFactor; dx++) joined.push(...rows[(top + dy) * grid + left + dx]!);
    }
    return module('mm.model.fc', joined, 64);
  });
}

const expected = encodePlainly(buildRandomVision(), pixels).flat();
const factories = [
  createReferencePackFactory(),
  createWasmPackFactory(createNodeWasmPlatform()),
  ...loadNativeBuilds()
    .slice(0, 1)
    .map((build) => createNativePackFactory(build)),
];

describe.each(factories)('an image encoder on $name', (factory) => {
  test('computes the rows of a plain reference in double precision', async () => {
    const encoder = await open(factory);
    const rows = await encoder.encode(pixels);
    await encoder.dispose();
    expect(rows).toHaveLength(expected.length);
    // Not closer: the kernels round GELU to half floats, as llama.cpp does.
    for (const [i, value] of rows.entries()) expect(Math.abs(value - expected[i]!), `value ${i}`).toBeLessThan(2e-3);
  });

  test('gives the same bits again, and nearly the same with 8-bit weights', async () => {
    const encoder = await open(factory, { type: 'Q8_0' });
    const first = await encoder.encode(pixels);
    await encoder.encode(pixels.map((value) => -value));
    expect(await encoder.encode(pixels)).toEqual(first);
    for (const [i, value] of first.entries()) expect(Math.abs(value - expected[i]!), `value ${i}`).toBeLessThan(0.15);
    await encoder.dispose();
  });
});

const u32 = (key: string, value: number) => ({ key, type: 'u32', value }) as const;

test.each<[string, RandomVisionOptions, string, RegExp]>([
  [
    'another projector',
    { metadata: [{ key: 'clip.projector_type', type: 'string', value: 'qwen2vl_merger' }] },
    'unsupported',
    /"qwen2vl_merger"; supported: idefics3/,
  ],
  ['no projector type', { metadata: [{ key: 'clip.projector_type', value: null }] }, 'unsupported', /projector_type/],
  [
    'a language model',
    { metadata: [{ key: 'general.architecture', type: 'string', value: 'llama' }] },
    'invalid_option',
    /"clip", this file "llama"/,
  ],
  [
    'a projector for audio',
    { metadata: [{ key: 'clip.has_vision_encoder', value: null }] },
    'unsupported',
    /no image encoder/,
  ],
  ['another activation', { metadata: [{ key: 'clip.use_gelu', value: null }] }, 'unsupported', /clip\.use_gelu/],
  ['a missing tensor', { omit: (name) => name === 'v.blk.1.ln2.bias' }, 'invalid_model_file', /v\.blk\.1\.ln2\.bias/],
  ['no projection', { omit: (name) => name.startsWith('mm.') }, 'invalid_model_file', /mm\.model\.fc\.weight/],
  [
    'patches that do not fill the image',
    { metadata: [u32('clip.vision.image_size', 25)] },
    'invalid_model_file',
    /25.*4/,
  ],
  ['more patches than positions', { metadata: [u32('clip.vision.image_size', 32)] }, 'invalid_model_file', /36.*64/],
  ['too many patches', { metadata: [u32('clip.vision.patch_size', 0)] }, 'invalid_model_file', /patch_size" is 0/],
  [
    'squares that do not fill a row',
    { metadata: [u32('clip.vision.projector.scale_factor', 4)] },
    'invalid_model_file',
    /6.*4/,
  ],
  [
    'a deviation of 0',
    { metadata: [{ key: 'clip.vision.image_std', type: 'array<f32>', value: Float32Array.of(1, 0, 1) }] },
    'invalid_model_file',
    /image_std.*\[1, 0, 1\]/,
  ],
  [
    'a mean of two colours',
    { metadata: [{ key: 'clip.vision.image_mean', type: 'array<f32>', value: Float32Array.of(1, 0) }] },
    'invalid_model_file',
    /image_mean.*3 values/,
  ],
])('rejects %s by name', async (_what, options, code, message) => {
  await expect(open(createReferencePackFactory(), options)).rejects.toMatchObject({
    code,
    message: expect.stringMatching(message),
  });
});
