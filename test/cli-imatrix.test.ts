// `ruvllm imatrix`: which columns matter, and what `ruvllm quantize --imatrix` gains from it.
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { runCli } from '../src/cli/run-cli.ts';
import { createMemorySource } from '../src/core/byte-source.ts';
import { createRandom } from '../src/core/random.ts';
import { readImatrix } from '../src/gguf/imatrix/imatrix.ts';
import { openGguf } from '../src/gguf/index.ts';
import { dequantizeRow } from '../src/quant/index.ts';
import { createTokenizer } from '../src/tokenizers/tokenizer.ts';
import { createFakeIo } from './support/cli-io.ts';
import { buildRandomModel } from './support/random-model.ts';
import { CALIBRATION_STORY, HELD_OUT_STORY } from './support/story-texts.ts';

const SHAPE = { embeddingDim: 64, feedForwardDim: 96, numLayers: 2, numHeads: 2, numKvHeads: 2, headDim: 32 };
const folder = mkdtempSync(join(tmpdir(), 'ruvllm-imatrix-'));
const model = join(folder, 'model.gguf');
const mixture = join(folder, 'mixture.gguf');
const text = join(folder, 'text.txt');
const stories = fileURLToPath(new URL('../../shared/models/stories260K-f32.gguf', import.meta.url));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
beforeAll(() => {
  writeFileSync(model, buildRandomModel({ architecture: 'llama', type: 'F32', seed: 4, shape: SHAPE }));
  const experts = { numExperts: 4, numUsed: 2, feedForwardDim: 32 };
  writeFileSync(
    mixture,
    buildRandomModel({ architecture: 'qwen3moe', type: 'F32', seed: 5, shape: { ...SHAPE, experts } }),
  );
  writeFileSync(text, 'Once upon a time there was a little girl named Lily. She had a red ball.');
});

async function cli(...args: string[]): Promise<{ code: number; stdout: string; stderr: string }> {
  const io = createFakeIo({ folder });
  const code = await runCli(args, '9.9.9', io);
  return { code, ...io.written };
}

test('writes the mean squares of the inputs of each matrix', async () => {
  const path = join(folder, 'imatrix.gguf');
  const { code, stderr, stdout } = await cli('imatrix', model, text, '-o', path, '--chunk', '16', '--json');
  expect(code, stderr).toBe(0);
  const bytes = readFileSync(path);
  const gguf = openGguf(createMemorySource(readFileSync(model)));
  const tokens = createTokenizer(gguf.metadata).encode(readFileSync(text, 'utf8'), { addSpecial: true });
  const { numTokens, numChunks } = JSON.parse(stdout) as { numTokens: number; numChunks: number };
  expect([numTokens, numChunks]).toEqual([tokens.length, Math.ceil(tokens.length / 16)]);
  // The input of the first layer is the normalized embedding, which needs no model to compute.
  const read = (name: string): Float32Array => {
    const tensor = gguf.tensor(name);
    const data = new Uint8Array(tensor.sizeBytes);
    gguf.readTensor(tensor, data);
    const values = new Float32Array(tensor.numElements);
    dequantizeRow(tensor.type, data, values, values.length);
    return values;
  };
  const [embeddings, norm] = [read('token_embd.weight'), read('blk.0.attn_norm.weight')];
  const epsilon = gguf.metadata.number('llama.attention.layer_norm_rms_epsilon');
  const expected = new Float64Array(64);
  for (const token of tokens) {
    const row = embeddings.subarray(token * 64, token * 64 + 64);
    const rms = Math.sqrt(row.reduce((sum, x) => sum + x * x, 0) / 64 + epsilon);
    for (let col = 0; col < 64; col++) expected[col]! += ((row[col]! / rms) * norm[col]!) ** 2 / tokens.length;
  }
  const matrix = readImatrix(createMemorySource(bytes));
  for (const part of ['attn_q', 'attn_k', 'attn_v']) {
    const values = matrix.get(`blk.0.${part}.weight`)!;
    values.forEach((value, col) => expect(value / expected[col]!).toBeCloseTo(1, 4));
  }
  const names = ['attn_q', 'attn_k', 'attn_v', 'attn_output', 'ffn_gate', 'ffn_up', 'ffn_down'];
  const all = [0, 1].flatMap((layer) => names.map((name) => `blk.${layer}.${name}.weight`));
  expect([...matrix.keys()].toSorted()).toEqual([...all, 'output.weight'].toSorted());
  // As llama.cpp reads it.
  const file = openGguf(createMemorySource(bytes));
  expect(file.metadata.string('general.type')).toBe('imatrix');
  expect(file.tensor('blk.1.ffn_down.weight.in_sum2').dims).toEqual([96, 1]);
  expect(file.tensor('blk.1.ffn_down.weight.counts').dims).toEqual([1, 1]);
});

test('counts the rows of each expert', async () => {
  const path = join(folder, 'experts.gguf');
  expect((await cli('imatrix', mixture, text, '-o', path)).code).toBe(0);
  const file = openGguf(createMemorySource(readFileSync(path)));
  const counts = new Float32Array(4);
  file.readTensor(file.tensor('blk.0.ffn_up_exps.weight.counts'), new Uint8Array(counts.buffer));
  const gguf = openGguf(createMemorySource(readFileSync(mixture)));
  const numTokens = createTokenizer(gguf.metadata).encode(readFileSync(text, 'utf8'), { addSpecial: true }).length;
  expect(counts.reduce((sum, count) => sum + count, 0)).toBe(2 * numTokens);
  expect(
    (await cli('quantize', mixture, join(folder, 'mixture-q4.gguf'), '--type', 'Q4_0', '--imatrix', path)).code,
  ).toBe(0);
});

const hasStories = existsSync(stories);
if (!hasStories) console.log('imatrix on a real model skipped: stories260K-f32.gguf is not in ../shared/models');

test.skipIf(!hasStories)(
  'lowers the divergence on another text, more than when it is shuffled over columns',
  async () => {
    const [calibration, heldOut] = [join(folder, 'calibration.txt'), join(folder, 'held-out.txt')];
    writeFileSync(calibration, CALIBRATION_STORY);
    writeFileSync(heldOut, HELD_OUT_STORY);
    const path = join(folder, 'stories.gguf');
    expect((await cli('imatrix', stories, calibration, '-o', path)).code).toBe(0);
    const divergence = async (...flags: string[]): Promise<number> => {
      const out = join(folder, 'stories-q4.gguf');
      const args = [stories, out, '--type', 'IQ4_NL', '--text', heldOut, '--tokens', '600', '--force', '--json'];
      const { stdout } = await cli('quantize', ...args, ...flags);
      return (JSON.parse(stdout) as { divergence: { meanKl: number } }).divergence.meanKl;
    };
    const plain = await divergence();
    const weighted = await divergence('--imatrix', path);
    expect(weighted).toBeLessThan(0.95 * plain);
    let sum = 0;
    for (const seed of [1, 2, 3]) {
      const shuffled = join(folder, `shuffled-${seed}.gguf`);
      writeFileSync(shuffled, shuffleColumns(readFileSync(path), seed));
      sum += await divergence('--imatrix', shuffled);
    }
    expect(weighted).toBeLessThan(0.97 * (sum / 3));
  },
);

/** The same file with the sums of each matrix in another order. */
function shuffleColumns(bytes: Uint8Array, seed: number): Uint8Array {
  const random = createRandom(seed);
  const file = openGguf(createMemorySource(bytes));
  const copy = Uint8Array.from(bytes);
  for (const tensor of file.tensors.values()) {
    if (!tensor.name.endsWith('.in_sum2')) continue;
    const values = new Float32Array(copy.buffer, tensor.offset, tensor.numElements);
    for (let i = values.length - 1; i > 0; i--) {
      const other = Math.floor(random.next() * (i + 1));
      [values[i], values[other]] = [values[other]!, values[i]!];
    }
  }
  return copy;
}

test.each([
  ['a text of one token', ['imatrix', 'MODEL', 'EMPTY', '-o', 'OUT'], /the text has 1 tokens, at least 2 are needed/],
  ['a missing text', ['imatrix', 'MODEL', 'MISSING', '-o', 'OUT'], /MISSING.*ENOENT/],
  ['a chunk of one token', ['imatrix', 'MODEL', 'TEXT', '-o', 'OUT', '--chunk', '1'], /--chunk must be from 2 to/],
  ['an output of another kind', ['imatrix', 'MODEL', 'TEXT', '-o', 'out.dat'], /out.dat must end with .gguf/],
  ['a model as importance matrix', ['quantize', 'MODEL', 'OUT', '--imatrix', 'MODEL'], /is not an importance matrix/],
  ['a text as importance matrix', ['quantize', 'MODEL', 'OUT', '--imatrix', 'TEXT'], /is not an importance matrix/],
  [
    'one of another model',
    ['quantize', 'MODEL', 'OUT', '--imatrix', 'OTHER'],
    /128 values for blk.0.ffn_down.weight, the tensor needs 96/,
  ],
])('refuses %s and leaves no file', async (_, args, message) => {
  const other = join(folder, 'other.gguf');
  if (!existsSync(other)) {
    const wide = join(folder, 'wide.gguf');
    writeFileSync(
      wide,
      buildRandomModel({ architecture: 'llama', type: 'F32', seed: 4, shape: { ...SHAPE, feedForwardDim: 128 } }),
    );
    expect(await cli('imatrix', wide, text, '-o', other)).toMatchObject({ code: 0 });
  }
  writeFileSync(join(folder, 'empty.txt'), '');
  const names: Record<string, string> = { MODEL: model, TEXT: text, OTHER: other };
  const paths = {
    EMPTY: join(folder, 'empty.txt'),
    MISSING: join(folder, 'MISSING'),
    OUT: join(folder, 'refused.gguf'),
  };
  const before = readdirSync(folder);
  const { code, stderr } = await cli(...args.map((arg) => ({ ...names, ...paths })[arg] ?? arg));
  expect(code).not.toBe(0);
  expect(stderr).toMatch(message);
  expect(readdirSync(folder)).toEqual(before);
});
