// Embeddings as users get them: dist/, real processes, real files.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { buildRandomBert } from './support/random-bert.ts';
import { buildRandomModel } from './support/random-model.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const isBuilt = existsSync(join(root, 'dist/lib/cli.js'));
if (!isBuilt) console.log('embedding tests skipped: dist/ is not built, run "npm run build"');
const library = isBuilt
  ? ((await import(pathToFileURL(join(root, 'dist/lib/index.js')).href)) as typeof import('../src/index.ts'))
  : null!;

const folder = mkdtempSync(join(tmpdir(), 'ruvllm-embed-'));
const encoder = join(folder, 'encoder.gguf');
const decoder = join(folder, 'decoder.gguf');
beforeAll(() => {
  writeFileSync(encoder, buildRandomBert());
  writeFileSync(decoder, buildRandomModel({ architecture: 'llama', type: 'Q8_0', seed: 3 }));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function ruvllm(args: readonly string[], input = '') {
  const env = { PATH: process.env['PATH'] ?? '', HOME: folder, HF_HUB_OFFLINE: '1' };
  const quick = ['--kernels', 'reference', '--threads', '1'];
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [join(root, 'bin/ruvllm.mjs'), 'embed', ...args, ...quick],
    { env, input, encoding: 'utf8' },
  );
  return { code: status, stdout, stderr };
}
const parseLines = (text: string): { text: string; embedding: number[] }[] =>
  text.trimEnd().split('\n').map((line) => JSON.parse(line) as { text: string; embedding: number[] }); // prettier-ignore

describe.skipIf(!isBuilt)('ruvllm embed', () => {
  test('prints a line of JSON per text, from arguments or the lines of stdin', () => {
    const { code, stdout } = ruvllm([encoder, 'abc de', 'f']);
    const lines = parseLines(stdout);
    expect(code).toBe(0);
    expect(lines.map(({ text }) => text)).toEqual(['abc de', 'f']);
    for (const { embedding } of lines) {
      expect(embedding).toHaveLength(64);
      expect(Math.hypot(...embedding)).toBeCloseTo(1, 5);
    }
    expect(ruvllm([encoder], 'abc de\nf\n').stdout).toBe(stdout);
  });

  test('--json prints one document; length, number of values and pooling can be chosen', () => {
    const flags = ['--json', '--dimensions', '3', '--no-normalize', '--pooling', 'last'];
    const { code, stdout, stderr } = ruvllm([decoder, 'abc', ...flags]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const document = JSON.parse(stdout);
    expect(document).toMatchObject({
      model: { reference: decoder, canGenerate: true, embeddingDim: 96, pooling: 'mean' },
    });
    expect(document.embeddings).toHaveLength(1);
    expect(document.embeddings[0]).toHaveLength(3);
    expect(Math.hypot(...document.embeddings[0])).not.toBeCloseTo(1, 2);
    expect(document.usage.promptTokens).toBeGreaterThan(1);
  });

  test.each([
    [['--pooling', 'max', 'a'], 2, '--pooling must be one of mean, last, cls'],
    [['--dimensions', '65', 'a'], 2, '--dimensions is 65; embeddings of this model have 64 values'],
    [['a', ''], 1, 'input[1] is empty'],
    [[], 2, 'no text to embed'],
  ])('%j fails with %i', (args, code, message) => {
    const outcome = ruvllm([encoder, ...args]);
    expect(outcome.code).toBe(code);
    expect(outcome.stderr).toContain(message);
    expect(outcome.stdout).toBe('');
  });
});

describe.skipIf(!isBuilt)('embed in the library', () => {
  test.each(['auto', 'wasm', 'reference'] as const)('an encoder on %s', async (kernels) => {
    await using model = await library.loadModel(encoder, { kernels, numThreads: 2 });
    expect(model.modelInfo()).toMatchObject({ canGenerate: false, embeddingDim: 64, pooling: 'mean', maxContext: 64 });
    const texts = Array.from({ length: 40 }, (_, i) => 'abcdefgh'.slice(i % 7) + ' ab'.repeat(i % 20));
    const { embeddings } = await model.embed(texts);
    for (const [i, text] of texts.entries()) {
      if (i % 9 === 0) expect((await model.embed(text)).embeddings[0]).toEqual(embeddings[i]);
    }
    await expect(model.generate('a')).rejects.toMatchObject({ code: 'unsupported' });
    await expect(model.embed('a '.repeat(63))).rejects.toMatchObject({
      code: 'context_overflow',
      data: { index: 0, promptTokens: 65, maxContext: 64 },
    });
    expect((await model.embed('a '.repeat(62))).usage.promptTokens).toBe(64);
    expect(await model.stats()).toMatchObject({ numRunning: 0, numWaiting: 0 });
  });

  test('an encoder keeps its length with steps smaller than the context', async () => {
    await using model = await library.loadModel(encoder, { kernels: 'reference', maxBatchTokens: 8 });
    expect((await model.embed('a '.repeat(62))).usage.promptTokens).toBe(64);
  });

  test('a decoder embeds while it generates, with the same results as alone', async () => {
    await using model = await library.loadModel(decoder, { kernels: 'wasm', numThreads: 2, maxBatchTokens: 16 });
    const ask = () => model.generate('the rain', { maxTokens: 20, seed: 1, ignoreEos: true });
    const texts = ['the rain in spain stays', 'a', 'the rain in spain stays mainly in the plain'];
    const alone = [await ask(), await model.embed(texts)] as const;
    const [answer, vectors] = await Promise.all([ask(), model.embed(texts)]);
    expect(answer.tokenIds).toEqual(alone[0].tokenIds);
    expect(vectors).toEqual(alone[1]);
  });
});
