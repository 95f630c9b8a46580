// Structured output through the built package: real tokenizers, the engine in its worker.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Model } from '../src/index.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const path = join(root, '../shared/models/stories260K-f32.gguf');
const library = (await import(pathToFileURL(join(root, 'dist/lib/index.js')).href)) as typeof import('../src/index.ts');
if (!existsSync(path)) console.log(`skipped: ${path} not found`);

const schema = {
  type: 'object',
  properties: {
    hero: { type: 'string', maxLength: 20 },
    age: { type: 'integer', minimum: 1, maximum: 99 },
    kind: { enum: ['cat', 'dog'] },
  },
  required: ['hero', 'age', 'kind'],
  additionalProperties: false,
};

describe.skipIf(!existsSync(path))('a model of stories', () => {
  let model: Model;
  beforeAll(async () => {
    model = await library.loadModel(path, { numThreads: 1 });
  });
  afterAll(() => model.dispose());

  test('answers satisfy the schema at any length, beside free text', async () => {
    const free = model.generate('Once upon a time', { temperature: 0, maxTokens: 40 });
    const texts = await Promise.all(
      Array.from({ length: 12 }, (_, i) =>
        model.generate('Once upon a time', {
          seed: i,
          maxTokens: 60 + 10 * i,
          grammar: { type: 'json_schema', schema },
        }),
      ),
    );
    for (const { text } of texts) {
      const { hero, age, kind } = JSON.parse(text) as { hero: string; age: number; kind: string };
      expect([...hero].length).toBeLessThanOrEqual(20);
      expect(age >= 1 && age <= 99 && Number.isInteger(age)).toBe(true);
      expect(['cat', 'dog']).toContain(kind);
    }
    const alone = await model.generate('Once upon a time', { temperature: 0, maxTokens: 40 });
    expect((await free).text).toBe(alone.text);
  });

  test('patterns and grammars', async () => {
    const regex = await model.generate('The number', {
      maxTokens: 20,
      grammar: { type: 'regex', pattern: '[0-9]{3}-[a-f]{2}' },
    });
    expect(regex.text).toMatch(/^[0-9]{3}-[a-f]{2}$/);
    expect(regex.finishReason).toBe('stop');
    const gbnf = await model.generate('Is it?', {
      maxTokens: 20,
      grammar: { type: 'gbnf', text: 'root ::= ("yes" | "no") "!"' },
    });
    expect(['yes!', 'no!']).toContain(gbnf.text);
  });

  test('a grammar too slow for the engine is followed in the thread for those, beside free text', async () => {
    const names = Array.from({ length: 20_000 }, (_, i) => `value ${i}`);
    const grammar = { type: 'json_schema', schema: { enum: names } } as const;
    const options = { maxTokens: 40, seed: 5, grammar };
    const free = model.generate('Once upon a time', { temperature: 0, maxTokens: 40 });
    const [first, second] = await Promise.all([
      model.generate('A value:', options),
      model.generate('A value:', options),
    ]);
    expect(names).toContain(JSON.parse(first.text));
    expect([first.finishReason, second.text]).toEqual(['stop', first.text]);
    const alone = await model.generate('Once upon a time', { temperature: 0, maxTokens: 40 });
    expect((await free).text).toBe(alone.text);
    await expect(model.generate('A value:', { ...options, maxTokens: 3 })).rejects.toMatchObject({
      code: 'invalid_option',
      data: { option: 'maxTokens', maxTokens: 3 },
    });
  });

  test('rejects an unenforceable grammar by name, and other requests continue', async () => {
    const bad = { type: 'json_schema', schema: { type: 'string', pattern: '(?=a)b' } } as const;
    await expect(model.generate('a', { maxTokens: 30, grammar: bad })).rejects.toMatchObject({ code: 'unsupported' });
    await expect(
      model.generate('a', { maxTokens: 30, grammar: { type: 'json_schema', schema: false } }),
    ).rejects.toMatchObject({ code: expect.stringMatching(/unsupported|invalid_option/) });
    await expect(
      model.generate('a', { maxTokens: 30, ignoreEos: true, grammar: { type: 'json_object' } }),
    ).rejects.toMatchObject({ code: 'invalid_option' });
    await expect(model.generate('a', { grammar: { type: 'xml' } as never })).rejects.toMatchObject({
      code: 'invalid_option',
    });
    await expect(model.generate('a', { maxTokens: 1, grammar: { type: 'json_object' } })).rejects.toMatchObject({
      data: { maxTokens: 1, neededTokens: 2 },
    });
    expect((await model.generate('a', { maxTokens: 2, grammar: { type: 'json_object' } })).text).toBe('{}');
  });
});
