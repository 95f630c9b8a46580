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
const dist = join(root, 'dist/lib/index.js');
const stories = join(root, '../shared/models/stories260K-f32.gguf');
const canRun = existsSync(dist) && existsSync(stories);
if (!canRun) console.log(`speculation tests skipped: they need dist/ and ${stories}`);
const library = canRun ? ((await import(pathToFileURL(dist).href)) as typeof import('../src/index.ts')) : null!;

const NUM_SEEDS = campaign({ short: 6, long: 200 });

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
  /** Where it pays; always; never. */
  let drafting: Model;
  let eager: Model;
  let plain: Model;
  beforeAll(async () => {
    const memory = { maxContext: 320, numThreads: 1 };
    drafting = await library.loadModel(stories, memory);
    eager = await library.loadModel(stories, { ...memory, speculation: 'on' });
    plain = await library.loadModel(stories, { ...memory, speculation: 'off' });
  });
  afterAll(async () => {
    await drafting?.dispose();
    await eager?.dispose();
    await plain?.dispose();
    rmSync(folder, { recursive: true, force: true });
  });

  const prompts = [`${TEXT}\n\n${TEXT.slice(0, 40)}`, 'Once upon a time', TEXT];

  test.each(Object.entries(KINDS))('gives the same answer as plain decoding: %s', async (_name, options) => {
    for (let seed = 0; seed < NUM_SEEDS; seed++) {
      const prompt = prompts[seed % prompts.length]!;
      const call = { maxTokens: 70, seed, ...options };
      const expected = essence(await plain.generate(prompt, call));
      for (const model of [drafting, eager]) {
        expect(essence(await model.generate(prompt, call)), `seed ${seed}`).toEqual(expected);
      }
    }
  });

  test('gives the same answers to concurrent requests of all kinds', async () => {
    const calls = Object.values(KINDS).flatMap((options, kind) =>
      prompts.map((prompt, i) => ({ prompt, call: { maxTokens: 50, seed: 7 * kind + i, ...options } })),
    );
    const ask = (model: Model) => Promise.all(calls.map(({ prompt, call }) => model.generate(prompt, call)));
    const expected = (await ask(plain)).map(essence);
    expect((await ask(drafting)).map(essence)).toEqual(expected);
    expect((await ask(eager)).map(essence)).toEqual(expected);
  });

  test('accepts right guesses, and counts them', async () => {
    const call = { temperature: 0, maxTokens: 80, seed: 1 };
    const before = await eager.stats();
    const first = await eager.generate('Once upon a time', { ...call, tenant: 'counting' });
    // The same answer again: known from the first time.
    const again = await eager.generate('Once upon a time', { ...call, tenant: 'counting' });
    expect(again.text).toBe(first.text);
    expect(again.usage.acceptedDraftTokens).toBeGreaterThan(40);
    expect(again.usage.acceptedDraftTokens).toBeGreaterThan(2 * first.usage.acceptedDraftTokens);
    const after = await eager.stats();
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
      const { drafts } = await eager.stats();
      await eager.generate(prompt, { temperature: 0, maxTokens: 40, ...options });
      return (await eager.stats()).drafts.learned.numProposed - drafts.learned.numProposed;
    };
    await ask({ tenant: 'private', cachePrefix: false });
    expect(await ask({ tenant: 'private' })).toBe(0);
    expect(await ask({ tenant: 'private' })).toBeGreaterThan(0);
    expect(await ask({ tenant: 'stranger' })).toBe(0);
  });

  test('guesses forced parts of a schema', async () => {
    const { drafts } = await eager.stats();
    const call: GenerateOptions = { temperature: 0, maxTokens: 120, grammar: { type: 'json_schema', schema } };
    for (let i = 0; i < 4; i++) await eager.generate(`Start number ${i}`, { ...call, tenant: `tenant ${i}` });
    expect((await eager.stats()).drafts.grammar.numAccepted).toBeGreaterThan(drafts.grammar.numAccepted);
  });

  test('does not draft for models with recurrent layers', async () => {
    const path = join(folder, 'hybrid.gguf');
    writeFileSync(path, buildRandomModel({ architecture: 'lfm2', type: 'F32', seed: 3 }));
    const model = await library.loadModel(path, { numThreads: 1, speculation: 'on' });
    try {
      const { usage } = await model.generate('a a a a a a a a', { temperature: 0, maxTokens: 40, ignoreEos: true });
      expect(usage).toMatchObject({ completionTokens: 40, acceptedDraftTokens: 0, rejectedDraftTokens: 0 });
    } finally {
      await model.dispose();
    }
  });

  test('uses a smaller model with the same vocabulary for drafts, and reports one that cannot serve', async () => {
    const build = (name: string, type: 'F32' | 'Q8_0' | 'Q4_0', more = {}): string => {
      const path = join(folder, name);
      writeFileSync(path, buildRandomModel({ architecture: 'llama', type, seed: 7, ...more }));
      return path;
    };
    const target = build('target.gguf', 'F32');
    const draft = build('draft.gguf', 'Q8_0');
    const foreign = build('foreign.gguf', 'Q4_0', { shape: { vocabSize: 300 } });
    const call = { temperature: 0, maxTokens: 60, ignoreEos: true, cachePrefix: false };
    const warnings: string[] = [];
    const onWarning = (warning: Error): void => void warnings.push(warning.message);
    process.on('warning', onWarning);
    try {
      const answers: string[] = [];
      for (const draftModel of [undefined, draft, foreign, target]) {
        const model = await library.loadModel(target, { numThreads: 1, speculation: 'on', ...(draftModel === undefined ? {} : { draftModel }) }); // prettier-ignore
        const { text } = await model.generate('abc', call);
        answers.push(text);
        const { drafts } = await model.stats();
        // Random weights soon repeat themselves, which needs no draft model.
        if (draftModel === draft) expect(drafts.model.numAccepted).toBeGreaterThan(0);
        else expect(drafts.model.numProposed).toBe(0);
        await model.dispose();
      }
      expect(new Set(answers).size).toBe(1);
      await expect.poll(() => warnings).toEqual([
        expect.stringMatching(/foreign\.gguf is not used: its vocabulary has 300 tokens/),
        expect.stringMatching(/target\.gguf is not used: it has \d+ bytes of weights, the model \d+/),
      ]); // prettier-ignore
    } finally {
      process.off('warning', onWarning);
    }
    await expect(library.loadModel(target, { draftModel: join(folder, 'absent.gguf') })).rejects.toMatchObject({ code: 'not_found' }); // prettier-ignore
  });

  test('rejects a prediction that is no text or too long', async () => {
    const wrong = drafting.generate('a', { prediction: 7 as unknown as string });
    await expect(wrong).rejects.toMatchObject({ code: 'invalid_option' });
    const long = drafting.generate('a', { prediction: 'a'.repeat(1_000_001) });
    await expect(long).rejects.toMatchObject({ code: 'invalid_option', data: { limit: 1_000_000 } });
    await expect(library.loadModel(stories, { speculation: 'sometimes' as 'auto' })).rejects.toThrow(/speculation/);
  });
});
