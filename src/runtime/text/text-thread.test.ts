import { expect, test } from 'vitest';
import { createToyRuntime } from '../../../test/support/toy-runtime.ts';
import { createToyTemplate, createToyTokenizer } from '../../../test/support/toy-tokenizer.ts';
import { RuvLLMError } from '../../core/errors.ts';
import type { ChatMessage } from '../../chat/types.ts';
import { runTextTask, type TextTask } from './text-tasks.ts';
import { MAX_WEIGHT_HERE, type TextThread } from './text-thread.ts';

const LONG = 'a'.repeat(MAX_WEIGHT_HERE + 1);
const chat = (content: string, count = 1): ChatMessage[] =>
  Array.from({ length: count }, () => ({ role: 'user', content }));

/** A runtime with a thread that is none, and what was encoded or decoded where. */
async function setUp(answer: 'work' | 'null' | 'fail' = 'work', onRun = (): void => {}) {
  const aside: TextTask[] = [];
  const other = { tokenizer: createToyTokenizer(), chatTemplate: createToyTemplate() };
  const tenants: (string | undefined)[] = [];
  const textThread: TextThread = {
    async run(task, _, tenant) {
      aside.push(task);
      tenants.push(tenant);
      onRun();
      if (answer === 'fail') throw new RuvLLMError('overloaded', 'not now');
      return answer === 'null' ? null : runTextTask(structuredClone(task), other);
    },
    async dispose() {},
  };
  const runtime = await createToyRuntime({ textThread });
  const here: number[] = [];
  const { tokenizer } = runtime;
  for (const name of ['encode', 'encodeTemplate'] as const) {
    const encode = tokenizer[name];
    tokenizer[name] = (text: string, options?: object) => {
      here.push(text.length);
      return encode(text, options);
    };
  }
  const decode = tokenizer.decode;
  tokenizer.decode = (ids, options) => {
    here.push(ids.length);
    return decode(ids, options);
  };
  return { ...runtime, aside, tenants, here };
}

test('[TX1] nothing long is rendered, encoded or decoded here', async () => {
  const { model, aside, here } = await setUp();
  const fails = { code: 'context_overflow' };
  await expect(model.generate(LONG)).rejects.toMatchObject(fails);
  await expect(model.generate(chat(LONG))).rejects.toMatchObject(fails);
  await expect(model.generate(chat('a', 100))).rejects.toMatchObject(fails);
  await expect(model.embed(['a', LONG])).rejects.toMatchObject(fails);
  await expect(model.embed(Array.from({ length: 300 }, () => 'a'))).resolves.toBeDefined();
  await expect(model.session('s').generate(LONG)).rejects.toMatchObject(fails);
  await model.session('t').generate('a', { maxTokens: 1 });
  await expect(model.session('t').generate(LONG)).rejects.toMatchObject(fails);
  const tools = [{ type: 'function', function: { name: 'f', description: LONG } }] as const;
  await model.aside.encodePrompt(chat('a'), { tools });
  await model.aside.encodePrompt(chat('a'), { templateVariables: { x: LONG } });
  await model.aside.encode(LONG);
  await model.aside.decode(new Int32Array(MAX_WEIGHT_HERE + 1).fill(4));
  expect(aside).toHaveLength(11);
  expect(Math.max(...here)).toBe(1);
});

test('[TX1] short texts are done here', async () => {
  const { model, aside, here } = await setUp();
  await model.generate('ab', { maxTokens: 1 });
  await model.generate(chat('ab', 10), { maxTokens: 1 });
  await model.embed('ab');
  expect(await model.aside.decode(await model.aside.encode('ab'))).toBe('ab');
  expect(await model.aside.encodePrompt([7, 8])).toEqual([7, 8]);
  expect(aside).toEqual([]);
  expect(here).toHaveLength(5);
});

test('[TX2] the same ids and the same errors come from both', async () => {
  const { model, here } = await setUp();
  const ids = model.encodePrompt(LONG);
  here.length = 0;
  expect(await model.aside.encodePrompt(LONG)).toEqual(ids);
  expect(here).toEqual([]);
  for (const prompt of [`${LONG}\ud800`, chat(`${LONG}\ud800`)]) {
    let expected: unknown;
    try {
      model.encodePrompt(prompt);
    } catch (error) {
      expected = error;
    }
    const { code, message, data } = expected as RuvLLMError;
    await expect(model.aside.encodePrompt(prompt)).rejects.toMatchObject({ code, message, data });
  }
  for (const prompt of [null, 5, { role: 'user' }, [{ role: 'user' }], [null]]) {
    await expect(model.generate(prompt as never)).rejects.toMatchObject({ code: 'invalid_option' });
  }
});

test('[TX5] what the thread cannot do is done here; its refusals are the answer', async () => {
  const { model, here } = await setUp('null');
  expect(await model.aside.encode(LONG)).toHaveLength(LONG.length);
  expect(here).toEqual([LONG.length]);
  const refusing = await setUp('fail');
  await expect(refusing.model.generate(LONG)).rejects.toMatchObject({ code: 'overloaded' });
  expect(refusing.here).toEqual([]);
});

test('[TX7] a prompt is encoded once, and told before anything is generated', async () => {
  const { model, here } = await setUp();
  const told: string[] = [];
  const options = { maxTokens: 1e6, clampMaxTokens: true, onPrompt: (count: number) => void told.push(String(count)) };
  const { usage } = await model.generate('ab', options);
  expect(here).toEqual([2]);
  expect(told).toEqual(['3']);
  expect(usage.totalTokens).toBeLessThanOrEqual(model.modelInfo().maxContext);
  await expect(model.generate('ab', { maxTokens: 1e6 })).rejects.toMatchObject({ code: 'context_overflow' });
});

test('[TX4] leaving while the thread is at work ends the call before the engine hears of it', async () => {
  let control = new AbortController();
  const { model, transport } = await setUp('work', () => control.abort());
  const texts = Array.from({ length: 300 }, () => 'a');
  await expect(model.embed(texts, { signal: control.signal })).rejects.toMatchObject({ code: 'aborted' });
  control = new AbortController();
  const variables = { templateVariables: { x: LONG } };
  const answer = model.generate(chat('a'), { ...variables, signal: control.signal, maxTokens: 1 });
  await expect(answer).rejects.toMatchObject({ code: 'aborted' });
  expect(transport.sent.filter(({ type }) => type === 'embed' || type === 'generate')).toEqual([]);
});

test('[TX7] every call names its tenant, because tenants take turns', async () => {
  const { model, tenants } = await setUp();
  const by = { tenant: 'alice' };
  const calls = [
    () => model.generate(LONG, by),
    () => model.generate(chat(LONG), by),
    () => model.generate('a', { ...by, maxTokens: 1, prediction: LONG }),
    () => model.embed(['a', LONG], by),
    () => model.rerank('a', [LONG], { ...by, method: 'embeddings' }),
    () => model.session('s', by).generate(LONG),
    () => model.cachedTokens(LONG, by),
    () => model.aside.encodePrompt(chat(LONG), by),
    () => model.aside.encode(LONG, by),
    () => model.aside.decode(new Int32Array(MAX_WEIGHT_HERE + 1).fill(4), by),
  ];
  for (const call of calls) await call().catch(() => {}); // too long for the toy model
  expect(tenants).toEqual(calls.map(() => 'alice'));
  await model.aside.encode(LONG);
  expect(tenants.at(-1)).toBe('local');
});
