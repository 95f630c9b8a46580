// `ruvllm quantize --method gptq`: columns are rounded in order, each with corrections for the errors before it.
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { runCli } from '../src/cli/run-cli.ts';
import { createMemorySource } from '../src/core/byte-source.ts';
import { openGguf } from '../src/gguf/index.ts';
import { planRequantization } from '../src/gguf/requantize/requantize.ts';
import { sourceFromGguf } from '../src/gguf/requantize/quantize-source.ts';
import type { GptqReport } from '../src/node/quantize/gptq-report.ts';
import { PASS_BYTES, roundWithGptq } from '../src/node/quantize/gptq-rows.ts';
import { dequantizeRow } from '../src/quant/index.ts';
import { createFakeIo } from './support/cli-io.ts';
import { writeHfFolder } from './support/hf-folder.ts';
import { buildRandomModel } from './support/random-model.ts';
import { CALIBRATION_STORY, HELD_OUT_STORY } from './support/story-texts.ts';

const SHAPE = { embeddingDim: 64, feedForwardDim: 96, numLayers: 2, numHeads: 2, numKvHeads: 2, headDim: 32 };
const folder = mkdtempSync(join(tmpdir(), 'ruvllm-gptq-'));
const model = join(folder, 'model.gguf');
const calibration = join(folder, 'calibration.txt');
const heldOut = join(folder, 'held-out.txt');
const stories = fileURLToPath(new URL('../../shared/models/stories260K-f32.gguf', import.meta.url));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
beforeAll(() => {
  writeFileSync(model, buildRandomModel({ architecture: 'llama', type: 'F32', seed: 4, shape: SHAPE }));
  writeFileSync(calibration, CALIBRATION_STORY);
  writeFileSync(heldOut, HELD_OUT_STORY);
});

interface Result {
  readonly method: string;
  readonly command: string;
  readonly divergence: { readonly meanKl: number };
  readonly gptq: GptqReport;
}

async function quantize(...args: string[]): Promise<{ code: number; stdout: string; stderr: string }> {
  const io = createFakeIo({ folder });
  const code = await runCli(['quantize', ...args], '9.9.9', io);
  return { code, ...io.written };
}

function readTensor(path: string, name: string): Float32Array {
  const gguf = openGguf(createMemorySource(readFileSync(path)));
  const tensor = gguf.tensor(name);
  const bytes = new Uint8Array(tensor.sizeBytes);
  gguf.readTensor(tensor, bytes);
  const values = new Float32Array(tensor.numElements);
  dequantizeRow(tensor.type, bytes, values, values.length);
  return values;
}

const gptqFlags = ['--method', 'gptq', '--calibration', calibration];

test('rounds all matrices with visible inputs and names the others, for people and in JSON', async () => {
  const path = join(folder, 'small.gguf');
  const { code, stdout, stderr } = await quantize(model, path, '--type', 'Q4_0', ...gptqFlags, '--json');
  expect(code, stderr + stdout).toBe(0);
  const { gptq, method, command } = JSON.parse(stdout) as Result;
  expect(method).toBe('gptq');
  expect(command).toBe('ruvllm quantize model.gguf small.gguf --type Q4_0 --method gptq --calibration calibration.txt');
  const parts = ['attn_q', 'attn_k', 'attn_v', 'attn_output', 'ffn_gate', 'ffn_up', 'ffn_down'];
  const layers = [0, 1].flatMap((layer) => parts.map((part) => `blk.${layer}.${part}.weight`));
  expect(gptq.tensors.toSorted()).toEqual([...layers, 'output.weight'].toSorted());
  expect(gptq.others).toEqual([{ tensor: 'token_embd.weight', reason: 'its inputs are not visible' }]);
  const people = await quantize(model, path, '--type', 'Q4_0', ...gptqFlags, '--force');
  expect(people.stdout).toMatch(/gptq +15 tensors, \d+ tokens of calibration, run 2 times/);
  expect(people.stdout).toMatch(/not gptq +token_embd\.weight: its inputs are not visible/);
  expect(readdirSync(folder).filter((name) => name.startsWith('.'))).toEqual([]);
});

test('passes with a part of the matrices give the same rows as one pass', async () => {
  const gguf = openGguf(createMemorySource(readFileSync(model)));
  const plan = planRequantization(sourceFromGguf(gguf), 'Q4_0');
  const results = [];
  for (const passBytes of [PASS_BYTES, 1]) {
    const rows = await roundWithGptq({
      modelPath: model,
      path: join(folder, 'out.gguf'),
      plan,
      calibration: { text: CALIBRATION_STORY, chunkTokens: 64, maxTokens: 200, kernels: 'reference', numThreads: 1 },
      passBytes,
      onRows: () => {},
    });
    const targets = plan.filter(({ tensor }) => rows.report.tensors.includes(tensor.name));
    const bytes = targets.map(({ tensor, type }) => {
      const encoded = rows.encode({ tensor, type, values: new Float32Array(tensor.numElements), firstRow: 0 });
      return [tensor.name, encoded] as const;
    });
    results.push({ bytes, numPasses: rows.report.numPasses });
    rows.dispose();
  }
  const [whole, single] = results;
  expect(whole!.bytes.length).toBe(15);
  expect(single!.bytes).toEqual(whole!.bytes);
  // q, k and v share their inputs, and so do gate and up: four groups per layer, and the output matrix.
  expect([whole!.numPasses, single!.numPasses]).toEqual([2, 1 + 2 * 4 + 1]);
});

test('rounds experts whose inputs are visible one by one, and those with few inputs by importance', async () => {
  const mixture = join(folder, 'mixture.gguf');
  const experts = { numExperts: 4, numUsed: 2, feedForwardDim: 32 };
  const bytes = buildRandomModel({ architecture: 'qwen3moe', type: 'F32', seed: 5, shape: { ...SHAPE, experts } });
  writeFileSync(mixture, bytes);
  const report = async (...flags: string[]): Promise<GptqReport> => {
    const out = join(folder, 'mixture-q4.gguf');
    const { code, stdout } = await quantize(
      mixture,
      out,
      '--type',
      'Q4_0',
      ...gptqFlags,
      '--force',
      '--json',
      ...flags,
    );
    expect(code, stdout).toBe(0);
    return (JSON.parse(stdout) as Result).gptq;
  };
  const whole = await report();
  expect(whole.tensors).toContain('blk.0.ffn_gate_exps.weight');
  expect(whole.tensors).toContain('blk.1.ffn_up_exps.weight');
  const reasons = new Map(whole.others.map(({ tensor, reason }) => [tensor, reason]));
  expect(reasons.get('blk.0.ffn_down_exps.weight')).toBe('its inputs are not visible');
  // Each row is stored in its place: no value is far from its source.
  const [source, stored] = [mixture, join(folder, 'mixture-q4.gguf')].map((path) => readTensor(path, 'blk.1.ffn_gate_exps.weight')); // prettier-ignore
  const squares = source!.reduce((sum, value) => sum + value ** 2, 0);
  const errors = source!.reduce((sum, value, i) => sum + (value - stored![i]!) ** 2, 0);
  expect(errors / squares).toBeLessThan(0.04);
  const short = await report('--calibration-tokens', '70');
  const few = short.others.filter(({ reason }) => /^\d of 4 experts have fewer inputs than columns$/.test(reason));
  expect(few.map(({ tensor }) => tensor)).toContain('blk.0.ffn_up_exps.weight');
});

test('rounds types without levels by the importance of their columns', async () => {
  const path = join(folder, 'wide256.gguf');
  const shape = { ...SHAPE, embeddingDim: 256, feedForwardDim: 32, numLayers: 1, numHeads: 8, numKvHeads: 1 };
  writeFileSync(path, buildRandomModel({ architecture: 'llama', type: 'F32', seed: 6, shape }));
  const [matrix, ours, weighted] = ['imatrix.gguf', 'ours.gguf', 'weighted.gguf'].map((name) => join(folder, name));
  expect(await runCli(['imatrix', path, calibration, '-o', matrix!, '--chunk', '256'], '9.9.9', createFakeIo({ folder }))).toBe(0); // prettier-ignore
  expect((await quantize(path, weighted!, '--type', 'IQ2_XXS', '--imatrix', matrix!)).code).toBe(0);
  const { stdout } = await quantize(path, ours!, '--type', 'IQ2_XXS', ...gptqFlags, '--json');
  const { others, tensors } = (JSON.parse(stdout) as Result).gptq;
  const names = ['output', 'blk.0.attn_v', 'blk.0.ffn_down'];
  expect(tensors.toSorted()).toEqual(names.map((name) => `${name}.weight`).toSorted());
  expect(others).toContainEqual({
    tensor: 'blk.0.attn_q.weight',
    reason: 'values of IQ2_XXS are not rounded one by one',
  });
  expect(readTensor(ours!, 'blk.0.ffn_up.weight')).toEqual(readTensor(weighted!, 'blk.0.ffn_up.weight'));
});

test('quantizes the folder of a checkpoint and leaves no temporary files', async () => {
  const checkpoint = mkdtempSync(join(folder, 'checkpoint-'));
  const omit = (name: string): boolean => name === 'rope_freqs.weight';
  const shape = { numLayers: 1 };
  writeHfFolder(checkpoint, buildRandomModel({ architecture: 'qwen3', type: 'F32', seed: 3, shape, omit }));
  // A token for each character of plain text.
  const letters = Array.from({ length: 94 }, (_, i) => String.fromCharCode(33 + i));
  const vocab = Object.fromEntries([...letters, 'Ġ', 'Ċ'].map((token, id) => [token, id]));
  const tokenizer = {
    model: { type: 'BPE', vocab, merges: [] },
    pre_tokenizer: { type: 'ByteLevel', use_regex: true },
  };
  writeFileSync(join(checkpoint, 'tokenizer.json'), JSON.stringify(tokenizer));
  const before = readdirSync(folder);
  const flags = ['--type', 'Q4_0', ...gptqFlags, '--text', heldOut, '--tokens', '20', '--json'];
  const { code, stdout } = await quantize(checkpoint, join(folder, 'from-folder.gguf'), ...flags);
  expect(code, stdout).toBe(0);
  expect((JSON.parse(stdout) as Result).gptq.tensors).toContain('blk.0.attn_q.weight');
  expect(readdirSync(folder)).toEqual([...before, 'from-folder.gguf'].toSorted());
});

const hasStories = existsSync(stories);
if (!hasStories) console.log('gptq on a real model skipped: stories260K-f32.gguf is not in ../shared/models');

test.skipIf(!hasStories)('diverges less on another text than plain rounding', async () => {
  const divergence = async (...flags: string[]): Promise<number> => {
    const compare = ['--text', heldOut, '--tokens', '600', '--force', '--json'];
    const { code, stdout } = await quantize(stories, join(folder, 'q4.gguf'), '--type', 'Q4_0', ...flags, ...compare);
    expect(code, stdout).toBe(0);
    return (JSON.parse(stdout) as Result).divergence.meanKl;
  };
  const plain = await divergence();
  const gptq = await divergence(...gptqFlags);
  expect(gptq).toBeLessThan(0.8 * plain);
});

test.each([
  ['gptq without a text', ['--method', 'gptq'], 2, /--method gptq requires --calibration/],
  ['gptq with an importance matrix', ['METHOD', '--imatrix', 'x.gguf'], 2, /measures its own inputs: omit --imatrix/],
  ['a calibration text for rounding', ['--calibration', 'TEXT'], 2, /--calibration requires --method gptq/],
  ['a number of calibration tokens for rounding', ['--calibration-tokens', '9'], 2, /requires --method gptq/],
  ['a missing text', ['--method', 'gptq', '--calibration', 'MISSING'], 1, /MISSING.*ENOENT/],
  ['a text of one token', ['--method', 'gptq', '--calibration', 'EMPTY'], 2, /the text has 1 tokens, at least 2/],
  [
    'fewer tokens than columns',
    ['METHOD', '--calibration-tokens', '95'],
    2,
    /has 95 tokens, blk.0.ffn_down.weight needs at least its 96 columns/,
  ],
  ['a type without levels', ['METHOD', '--type', 'BF16'], 2, /no effect: values of BF16 are not rounded one by one/],
  [
    'a matrix that is too wide',
    ['WIDE', 'METHOD'],
    1,
    /blk.0.ffn_down.weight with 14592 columns need 813 MiB, at most 800/,
  ],
])('refuses %s and leaves no file', async (_, args, exitCode, message) => {
  writeFileSync(join(folder, 'empty.txt'), '');
  const wide = join(folder, 'wide.gguf');
  if (!existsSync(wide)) {
    const shape = { ...SHAPE, embeddingDim: 32, numHeads: 1, numKvHeads: 1, numLayers: 1, feedForwardDim: 14_592 };
    writeFileSync(wide, buildRandomModel({ architecture: 'llama', type: 'F32', seed: 4, shape }));
  }
  const words: Record<string, readonly string[]> = {
    METHOD: gptqFlags,
    TEXT: [calibration],
    EMPTY: [join(folder, 'empty.txt')],
    MISSING: [join(folder, 'MISSING')],
  };
  const before = readdirSync(folder);
  const flags = args.filter((arg) => arg !== 'WIDE').flatMap((arg) => words[arg] ?? [arg]);
  const { code, stderr } = await quantize(args.includes('WIDE') ? wide : model, join(folder, 'refused.gguf'), ...flags);
  expect(code).toBe(exitCode);
  expect(stderr).toMatch(message);
  expect(readdirSync(folder)).toEqual(before);
});
