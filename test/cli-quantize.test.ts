// `ruvllm quantize`: a file in other tensor types, read back and compared with its source.
import { createHash } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { runCli } from '../src/cli/run-cli.ts';
import { createMemorySource } from '../src/core/byte-source.ts';
import { describeImatrix } from '../src/gguf/imatrix/imatrix.ts';
import { createMemorySink, openGguf, writeGguf } from '../src/gguf/index.ts';
import { dequantizeRow } from '../src/quant/index.ts';
import { createFakeIo } from './support/cli-io.ts';
import { writeHfFolder } from './support/hf-folder.ts';
import { buildRandomModel } from './support/random-model.ts';

const folder = mkdtempSync(join(tmpdir(), 'ruvllm-quantize-'));
const source = join(folder, 'source.gguf');
const text = join(folder, 'text.txt');
afterAll(() => rmSync(folder, { recursive: true, force: true }));
beforeAll(() => {
  const shape = { embeddingDim: 256, feedForwardDim: 256, numLayers: 2, numHeads: 8, numKvHeads: 8, headDim: 32 };
  writeFileSync(source, buildRandomModel({ architecture: 'llama', type: 'F32', seed: 4, shape }));
  writeFileSync(text, 'Once upon a time there was a little girl named Lily.');
});

async function quantize(...args: string[]): Promise<{ code: number; stdout: string; stderr: string }> {
  const io = createFakeIo({ folder });
  const code = await runCli(['quantize', ...args], '9.9.9', io);
  return { code, ...io.written };
}

interface Result {
  readonly sha256: string;
  readonly sizeBytes: number;
  readonly bitsPerWeight: number;
  readonly types: Record<string, { readonly numTensors: number }>;
  readonly divergence: { readonly meanKl: number; readonly numTokens: number } | null;
}

test('writes Q4_K_M by default; the file opens, its hash is right, and its divergence was measured', async () => {
  const path = join(folder, 'q4.gguf');
  const { code, stdout, stderr } = await quantize(source, path, '--text', text, '--tokens', '12', '--json');
  expect(code, stderr).toBe(0);
  const result = JSON.parse(stdout) as Result;
  const bytes = readFileSync(path);
  expect(result.sha256).toBe(createHash('sha256').update(bytes).digest('hex'));
  expect(result.sizeBytes).toBe(bytes.length);
  const gguf = openGguf(createMemorySource(bytes));
  expect(gguf.tensor('output.weight').type).toBe('Q6_K');
  expect(gguf.tensor('blk.0.attn_q.weight').type).toBe('Q4_K');
  expect(Object.keys(result.types).sort()).toEqual(['F32', 'Q4_K', 'Q6_K']);
  expect(result.bitsPerWeight).toBeGreaterThan(4.5);
  expect(result.bitsPerWeight).toBeLessThan(7);
  expect(result.divergence!.numTokens).toBe(12);
  expect(result.divergence!.meanKl).toBeGreaterThan(1e-5);
  expect(result.divergence!.meanKl).toBeLessThan(0.2);
});

test('more bits diverge less', async () => {
  const divergences: number[] = [];
  for (const type of ['Q3_K_M', 'Q4_K_M', 'Q6_K', 'F16']) {
    const { stdout } = await quantize(source, join(folder, `${type}.gguf`), '--type', type, '--text', text, '--json');
    divergences.push((JSON.parse(stdout) as Result).divergence!.meanKl);
  }
  expect(divergences).toEqual(divergences.toSorted((a, b) => b - a));
  expect(divergences.at(-1)).toBeLessThan(1e-5);
});

test('shows sizes and types to people', async () => {
  const { code, stdout } = await quantize(source, join(folder, 'people.gguf'), '--type', 'q8_0');
  expect(code).toBe(0);
  expect(stdout).toMatch(/Q8_0 +16 tensors/);
  expect(stdout).not.toContain('divergence');
});

test.each([
  ['an unknown type', ['--type', 'Q4_X'], /--type must be one of F32, F16/],
  ['a number of tokens without a text', ['--tokens', '5'], /--tokens requires --text/],
])('refuses %s', async (_, flags, message) => {
  const { code, stderr } = await quantize(source, join(folder, 'refused.gguf'), ...flags);
  expect(code).toBe(2);
  expect(stderr).toMatch(message);
  expect(readdirSync(folder)).not.toContain('refused.gguf');
});

test('does not overwrite an existing file, and never the source', async () => {
  const path = join(folder, 'existing.gguf');
  writeFileSync(path, 'mine');
  expect((await quantize(source, path)).stderr).toContain('--force overwrites it');
  expect(readFileSync(path, 'utf8')).toBe('mine');
  expect((await quantize(source, path, '--force')).code).toBe(0);
  const before = readFileSync(source);
  expect((await quantize(source, source, '--force')).stderr).toContain('is the source');
  expect(readFileSync(source)).toEqual(before);
});

test('a source with a value that cannot be stored leaves no file behind', async () => {
  const bytes = readFileSync(source);
  const { offset } = openGguf(createMemorySource(bytes)).tensor('blk.1.ffn_up.weight');
  bytes.writeFloatLE(NaN, offset + 4);
  const broken = join(folder, 'broken.gguf');
  writeFileSync(broken, bytes);
  const before = readdirSync(folder);
  const { code, stderr } = await quantize(broken, join(folder, 'none.gguf'));
  expect(code).not.toBe(0);
  expect(stderr).toContain('blk.1.ffn_up.weight: value NaN at index 1');
  expect(readdirSync(folder)).toEqual(before);
});

test('quantizes the folder of a checkpoint as the file converted from it', async () => {
  const shape = { numLayers: 2 };
  const omit = (name: string): boolean => name === 'rope_freqs.weight';
  const checkpoint = mkdtempSync(join(folder, 'checkpoint-'));
  const bytes = buildRandomModel({ architecture: 'qwen3', type: 'F32', seed: 3, shape, omit });
  writeHfFolder(checkpoint, bytes);
  const original = join(folder, 'qwen3.gguf');
  writeFileSync(original, bytes);
  const [direct, converted] = [join(folder, 'direct.gguf'), join(folder, 'converted.gguf')];
  const result = await quantize(checkpoint, direct, '--type', 'Q4_K_M', '--json');
  expect(result.code, result.stderr).toBe(0);
  expect((await quantize(original, converted, '--type', 'Q4_K_M')).code).toBe(0);
  const [ours, expected] = [direct, converted].map((path) => openGguf(createMemorySource(readFileSync(path))));
  for (const tensor of expected!.tensors.values()) {
    const other = ours!.tensor(tensor.name);
    expect([other.type, other.dims]).toEqual([tensor.type, tensor.dims]);
    const [a, b] = [new Uint8Array(tensor.sizeBytes), new Uint8Array(tensor.sizeBytes)];
    expected!.readTensor(tensor, a);
    ours!.readTensor(other, b);
    expect(b, tensor.name).toEqual(a);
  }
});

test('refuses a folder without a checkpoint and leaves no file', async () => {
  const empty = mkdtempSync(join(folder, 'empty-'));
  const before = readdirSync(folder);
  const { code, stderr } = await quantize(empty, join(folder, 'none.gguf'));
  expect(code).not.toBe(0);
  expect(stderr).toContain('has no .safetensors file');
  expect(readdirSync(folder)).toEqual(before);
});

test('awq scales columns and divides the norm before them, so that the model stays the same', async () => {
  const matrix = join(folder, 'imatrix.gguf');
  const columns256 = Float64Array.from({ length: 256 }, (_, col) => (col % 5 === 0 ? 100 : 1));
  const names = ['attn_q', 'attn_k', 'attn_v', 'ffn_gate', 'ffn_up', 'ffn_down'];
  const sums = [0, 1].flatMap((block) =>
    names.map((name) => [`blk.${block}.${name}.weight`, { sums: columns256, counts: Float64Array.of(1) }] as const),
  );
  const sink = createMemorySink();
  writeGguf(describeImatrix(new Map(sums), { dataset: 'none', numChunks: 1, chunkTokens: 1 }), sink);
  writeFileSync(matrix, sink.toBytes());
  const path = join(folder, 'awq.gguf');
  const flags = ['--method', 'awq', '--imatrix', matrix, '--text', text, '--json'];
  const { code, stdout, stderr } = await quantize(source, path, '--type', 'Q4_0', ...flags);
  expect(code, stderr).toBe(0);
  const [scaled, original] = [path, source].map((file) => openGguf(createMemorySource(readFileSync(file))));
  const read = (gguf: typeof scaled, name: string): Float32Array => {
    const tensor = gguf!.tensor(name);
    const bytes = new Uint8Array(tensor.sizeBytes);
    gguf!.readTensor(tensor, bytes);
    const values = new Float32Array(tensor.numElements);
    dequantizeRow(tensor.type, bytes, values, values.length);
    return values;
  };
  const scales = (name: string): Float32Array => {
    const before = read(original, name);
    return read(scaled, name).map((value, i) => before[i]! / value);
  };
  // A group of which the search scales columns exists, and its products are those of the source up to rounding.
  const layer = [0, 1].find((index) =>
    scales(`blk.${index}.ffn_norm.weight`).some((scale) => Math.abs(scale - 1) > 0.01),
  );
  expect(layer).toBeDefined();
  const columns = scales(`blk.${layer}.ffn_norm.weight`);
  const [before, after] = [original, scaled].map((gguf) => read(gguf, `blk.${layer}.ffn_gate.weight`));
  let [error, squares] = [0, 0];
  after!.forEach((value, i) => {
    error += (value / columns[i % 256]! - before![i]!) ** 2;
    squares += before![i]! ** 2;
  });
  expect(Math.sqrt(error / squares)).toBeLessThan(0.12);
  // The columns of ffn_down and the rows of ffn_up before it change inversely.
  const norm = (gguf: typeof scaled, name: string, start: number, stride: number): number =>
    Math.hypot(...read(gguf, name).filter((_, i) => Math.floor(i / stride) % 256 === start));
  const changes = [0, 3, 77, 255].flatMap((index) =>
    [0, 1].map((block) => {
      const change = (part: string, stride: number): number =>
        norm(scaled, `blk.${block}.${part}.weight`, index, stride) /
        norm(original, `blk.${block}.${part}.weight`, index, stride);
      return { down: change('ffn_down', 1), up: change('ffn_up', 256) };
    }),
  );
  expect(changes.some(({ down }) => Math.abs(down - 1) > 0.1)).toBe(true);
  for (const { down, up } of changes) expect(Math.abs(Math.log(down * up))).toBeLessThan(0.3);
  const { divergence } = JSON.parse(stdout) as Result;
  expect(divergence!.meanKl).toBeLessThan(0.3);
});

test.each([
  ['awq without an importance matrix', ['--method', 'awq'], /--method awq requires --imatrix/],
  ['two bits without an importance matrix', ['--type', 'IQ2_XXS'], /--type IQ2_XXS requires --imatrix/],
  ['an unknown method', ['--method', 'magic'], /--method must be round, awq or gptq; got "magic"/],
])('refuses %s', async (_, flags, message) => {
  const { code, stderr } = await quantize(source, join(folder, 'refused.gguf'), ...flags);
  expect(code).toBe(2);
  expect(stderr).toMatch(message);
});
