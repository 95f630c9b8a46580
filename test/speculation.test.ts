// Speculative decoding through the built package: whatever is guessed, the answer is the one that plain decoding gives.
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { GenerateOptions, GenerateResult, Model } from '../src/index.ts';
import { campaign } from './support/campaign.ts';
import { buildRandomModel } from './support/random-model.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const dist = join(root, 'dist/index.js');
const stories = join(root, '../shared/models/stories260K-f32.gguf');
const canRun = existsSync(dist) && existsSync(stories);
if (!canRun) console.log(`speculation tests skipped: they need dist/ and ${stories}`);
const library = canRun ? ((await import(pathToFileURL(dist).href)) as typeof import('../src/index.ts')) : null!;

const NUM_SEEDS = campaign({ short: 12, long: 200 });

const schema = {
  type: 'object',
  properties: {
    hero: { type: 'string', maxLength: 12 },
    companion: { type: 'string', maxLength: 12 },
    kind: { enum: ['cat', 'dog'] },
    isBrave: { type: 'boolean' },
  },
  required: ['hero', 'companion', 'kind', 'isBrave'],
  additionalProperties: false,
};

const TEXT = 'Lily and Tom went to the park. They saw a big dog. The dog ran to Lily and Tom. Lily said, "Hello, dog!"';

/** One call of each kind that changes how tokens are chosen. */
const KINDS: Readonly<Record<string, GenerateOptions>> = {
  greedy: { temperature: 0 },
  sampled: { temperature: 1 },
  'sampled, all truncations': { temperature: 0.9, topK: 20, topP: 0.9, minP: 0.02, typicalP: 0.95 },
  penalties: { temperature: 0.7, repetitionPenalty: 1.3, presencePenalty: 0.5, frequencyPenalty: 0.3, penaltyWindow: 32 }, // prettier-ignore
  'logit bias': { temperature: 0, logitBias: { 5: -20, 300: 3 } },
  logprobs: { temperature: 0.5, topLogprobs: 3 },
  'stop string': { temperature: 0, stop: ['park'] },
  'least tokens': { temperature: 1, minTokens: 40 },
  schema: { temperature: 0.8, grammar: { type: 'json_schema', schema } },
  'schema and prediction': { temperature: 0, grammar: { type: 'json_schema', schema }, prediction: '{"hero":"Lily"' },
  prediction: { temperature: 0, prediction: TEXT },
  'wrong prediction': { temperature: 0.6, prediction: 'zebra xylophone quartz '.repeat(20) },
};

const essence = ({ text, tokenIds, finishReason, logprobs, stopString, seed }: GenerateResult) => ({
  text,
  tokenIds,
  finishReason,
  logprobs,
  stopString,
  seed,
});

describe.skipIf(!canRun)('speculation', () => {
  const folder = mkdtempSync(join(tmpdir(), 'ruvllm-speculation-'));
  let drafting: Model;
  let plain: Model;
  beforeAll(async () => {
    const memory = { maxContext: 320, numThreads: 1 };
    drafting = await library.loadModel(stories, memory);
    plain = await library.loadModel(stories, { ...memory, speculation: 'off' });
  });
  afterAll(async () => {
    await drafting?.dispose();
    await plain?.dispose();
    rmSync(folder, { recursive: true, force: true });
  });

  const prompts = [`${TEXT}\n\n${TEXT.slice(0, 40)}`, 'Once upon a time', TEXT];

  test.each(Object.entries(KINDS))('gives the same answer as plain decoding: %s', async (_name, options) => {
    for (let seed = 0; seed < NUM_SEEDS; seed++) {
      const prompt = prompts[seed % prompts.length]!;
      const call = { maxTokens: 70, seed, ...options };
      const expected = essence(await plain.generate(prompt, call));
      expect(essence(await drafting.generate(prompt, call)), `seed ${seed}`).toEqual(expected);
    }
  });

  test('gives the same answers to concurrent requests of all kinds', async () => {
    const calls = Object.values(KINDS).flatMap((options, kind) =>
      prompts.map((prompt, i) => ({ prompt, call: { maxTokens: 50, seed: 7 * kind + i, ...options } })),
    );
    const ask = (model: Model) => Promise.all(calls.map(({ prompt, call }) => model.generate(prompt, call)));
    const expected = (await ask(plain)).map(essence);
    expect((await ask(drafting)).map(essence)).toEqual(expected);
  });

  test('accepts right guesses, and counts them', async () => {
    const call = { temperature: 0, maxTokens: 80, seed: 1 };
    const before = await drafting.stats();
    const first = await drafting.generate('Once upon a time', { ...call, tenant: 'counting' });
    // The same answer again: known from the first time.
    const again = await drafting.generate('Once upon a time', { ...call, tenant: 'counting' });
    expect(again.text).toBe(first.text);
    expect(again.usage.acceptedDraftTokens).toBeGreaterThan(40);
    expect(again.usage.acceptedDraftTokens).toBeGreaterThan(2 * first.usage.acceptedDraftTokens);
    const after = await drafting.stats();
    expect(after.drafts.learned.numAccepted - before.drafts.learned.numAccepted).toBeGreaterThan(40);
    // The two answers took far fewer steps than tokens.
    expect(after.numSteps - before.numSteps).toBeLessThan(after.numGeneratedTokens - before.numGeneratedTokens - 40);
    expect((await plain.generate('Once', { maxTokens: 8 })).usage).toMatchObject({
      acceptedDraftTokens: 0,
      rejectedDraftTokens: 0,
    });
  });

  test('learns nothing for another tenant, and nothing from calls without a prefix cache', async () => {
    const prompt = 'One day, a girl named Sue found a box.';
    const ask = async (options: GenerateOptions) => {
      const { drafts } = await drafting.stats();
      await drafting.generate(prompt, { temperature: 0, maxTokens: 40, ...options });
      return (await drafting.stats()).drafts.learned.numProposed - drafts.learned.numProposed;
    };
    await ask({ tenant: 'private', cachePrefix: false });
    expect(await ask({ tenant: 'private' })).toBe(0);
    expect(await ask({ tenant: 'private' })).toBeGreaterThan(0);
    expect(await ask({ tenant: 'stranger' })).toBe(0);
  });

  test('generates forced parts of a schema in fewer steps than tokens', async () => {
    const { drafts } = await drafting.stats();
    const call: GenerateOptions = { temperature: 0, maxTokens: 120, grammar: { type: 'json_schema', schema } };
    await drafting.generate('A fresh start', call);
    expect((await drafting.stats()).drafts.grammar.numAccepted).toBeGreaterThan(drafts.grammar.numAccepted + 3);
    // The second answer is spelled and spaced like the first.
    const { usage } = await drafting.generate('A fresh start again', call);
    expect(usage.acceptedDraftTokens).toBeGreaterThan(usage.completionTokens / 3);
  });

  test('does not draft for models with recurrent layers', async () => {
    const path = join(folder, 'hybrid.gguf');
    writeFileSync(path, buildRandomModel({ architecture: 'lfm2', type: 'F32', seed: 3 }));
    const model = await library.loadModel(path, { numThreads: 1 });
    try {
      const { usage } = await model.generate('a a a a a a a a', { temperature: 0, maxTokens: 40, ignoreEos: true });
      expect(usage).toMatchObject({ completionTokens: 40, acceptedDraftTokens: 0, rejectedDraftTokens: 0 });
    } finally {
      await model.dispose();
    }
  });

  test('rejects a prediction that is no text or too long', async () => {
    const wrong = drafting.generate('a', { prediction: 7 as unknown as string });
    await expect(wrong).rejects.toMatchObject({ code: 'invalid_option' });
    const long = drafting.generate('a', { prediction: 'a'.repeat(1_000_001) });
    await expect(long).rejects.toMatchObject({ code: 'invalid_option', data: { limit: 1_000_000 } });
    await expect(library.loadModel(stories, { speculation: 'on' as 'auto' })).rejects.toThrow(/speculation/);
  });
});
