import { expect, test } from 'vitest';
import { createMemoryRecords } from '../../../test/support/memory-records.ts';
import { toyContinuation } from '../../../test/support/toy-model.ts';
import { createToyRuntime, saying } from '../../../test/support/toy-runtime.ts';
import type { SessionOptions } from './session.ts';

const END = new Set([1]);
const ask = (seed: number, maxTokens = 20) => ({ seed, maxTokens });

/** A conversation computed without engine, pages or sessions. */
function expectedTokens(turns: readonly { ids: readonly number[]; seed: number; maxTokens: number }[]): number[] {
  const tokens: number[] = [];
  for (const { ids, seed, maxTokens } of turns) {
    tokens.push(...ids);
    tokens.push(...toyContinuation(tokens, { seed, maxTokens, stopIds: END }));
  }
  return tokens;
}

test('a session is the whole history, asked at once: BOS once, every turn behind the last', async () => {
  const { model, tokenizer } = await createToyRuntime();
  const session = model.session('s');
  expect(session).toMatchObject({ id: 's', tenant: 'local', tokenIds: [], numTurns: 0 });
  const first = await session.generate('how are you?', ask(1));
  const afterFirst = session.tokenIds;
  const second = await session.generate(' and you', ask(2));
  await session.generate([5, 6, 7], ask(3));
  expect(session.tokenIds).toEqual(
    expectedTokens([
      { ids: [0, ...tokenizer.encode('how are you?')], ...ask(1) },
      { ids: tokenizer.encode(' and you'), ...ask(2) },
      { ids: [5, 6, 7], ...ask(3) },
    ]),
  );
  expect(session.numTurns).toBe(3);
  expect(afterFirst).toEqual([0, ...tokenizer.encode('how are you?'), ...first.tokenIds]);
  const whole = [...afterFirst, ...tokenizer.encode(' and you')];
  const alone = await model.generate(whole, { ...ask(2), cachePrefix: false });
  expect(second.tokenIds).toEqual(alone.tokenIds);
  expect(second.text).toBe(alone.text);
  expect(second.usage.promptTokens).toBe(whole.length);
  // All but the last token of the first turn was computed for it; that one was said, not read.
  expect(second.usage.cachedTokens).toBe(afterFirst.length - (first.finishReason === 'stop' ? 0 : 1));
});

test.each([
  [4, true],
  [0, false], // behind a control token text begins, and gets the space that its vocabulary puts there
])('text after the token %i: is a continuation %s', async (lastId, isContinuation) => {
  const { model, tokenizer } = await createToyRuntime({ createSampler: saying([lastId, 1]) });
  const seen: (boolean | undefined)[] = [];
  const encode = tokenizer.encode;
  tokenizer.encode = (text, options) => {
    seen.push(options?.isContinuation);
    return encode(text, options);
  };
  await model.session('s').generate('a');
  await model.session('s').generate('a');
  expect(seen).toEqual([undefined, isContinuation]);
});

test('streams are turns too, and count with their last chunk', async () => {
  const { model } = await createToyRuntime();
  const session = model.session('s');
  const answer: number[] = [];
  for await (const chunk of session.generateStream('hello', ask(4))) {
    expect(session.numTurns).toBe(chunk.finishReason === null ? 0 : 1);
    answer.push(...chunk.tokenIds);
  }
  expect(session.tokenIds).toEqual([...model.encodePrompt('hello'), ...answer]);
});

test('a turn that fails, is aborted or left leaves the conversation as it was, and the session free', async () => {
  const { model } = await createToyRuntime();
  const session = model.session('s');
  await session.generate('hello', ask(1));
  const before = session.tokenIds;
  const long: SessionOptions = { maxTokens: 300, ignoreEos: true };

  for await (const chunk of session.generateStream('more', long)) if (chunk.tokenIds.length > 0) break;
  const controller = new AbortController();
  const aborted = session.generate('more', { ...long, signal: controller.signal });
  setImmediate(() => controller.abort());
  await expect(aborted).rejects.toMatchObject({ code: 'aborted' });
  await expect(session.generate('a'.repeat(600))).rejects.toMatchObject({ code: 'context_overflow' });
  await expect(session.generate([61])).rejects.toMatchObject({ code: 'invalid_token' });
  await expect(session.generate('')).rejects.toMatchObject({ code: 'empty_prompt' });
  await expect(session.generate([])).rejects.toMatchObject({ code: 'empty_prompt' });
  await expect(session.generate('\ud800')).rejects.toMatchObject({ code: 'invalid_text' });
  await expect(session.generate([{ role: 'user', content: 'hi' }] as never)).rejects.toMatchObject({
    code: 'invalid_option',
  });
  for (const options of [{ tenant: 'x' }, { session: 'x' }, { seed: -1 }, 5]) {
    await expect(session.generate('a', options as object)).rejects.toMatchObject({ code: 'invalid_option' });
  }
  expect(session.tokenIds).toEqual(before);
  expect(session.numTurns).toBe(1);
  await session.generate('more', ask(2));
  expect(session.numTurns).toBe(2);
  expect(await model.stats()).toMatchObject({ numRunning: 0, numFreePages: 64 });
});

test('two turns at once on one session are refused; on two sessions they are not', async () => {
  const { model } = await createToyRuntime();
  const first = model.session('s').generate('hello', ask(1));
  await expect(model.session('s').generate('hello', ask(1))).rejects.toMatchObject({
    code: 'conflict',
    isRetryable: true,
  });
  expect(() => model.session('s').clear()).toThrow(expect.objectContaining({ code: 'conflict' }));
  expect(() => model.deleteSession('s')).toThrow(expect.objectContaining({ code: 'conflict' }));
  await Promise.all([
    first,
    model.session('s', { tenant: 'other' }).generate('hello'),
    model.session('t').generate('a'),
  ]);
  expect(model.session('s').numTurns).toBe(1);
});

test('who has the last chunk may go on, though the stream was not read to its end', async () => {
  const { model } = await createToyRuntime({ createSampler: saying([4, 1]) });
  const stream = model.session('s').generateStream('a');
  await stream.next();
  expect((await stream.next()).value).toMatchObject({ finishReason: 'stop' });
  await model.session('s').generate('b');
});

test('tenants have sessions of their own', async () => {
  const { model } = await createToyRuntime();
  await model.session('s', { tenant: 'a' }).generate('hello', ask(1));
  expect(model.session('s', { tenant: 'b' }).numTurns).toBe(0);
  expect(model.session('s').numTurns).toBe(0);
  expect(model.sessions()).toEqual([]);
  expect(model.sessions({ tenant: 'a' })).toMatchObject([{ id: 's', tenant: 'a', numTurns: 1 }]);
  expect(model.deleteSession('s', { tenant: 'b' })).toBe(false);
  expect(model.deleteSession('s', { tenant: 'a' })).toBe(true);
});

test('a conversation that was forgotten or deleted is an error for who was in it, until cleared', async () => {
  const { model } = await createToyRuntime();
  const session = model.session('s');
  await session.generate('hello', ask(1));
  for (const id of ['a', 'b', 'c']) await model.session(id).generate('x', ask(1, 1));
  await expect(session.generate('more')).rejects.toMatchObject({
    code: 'not_found',
    data: { numTurns: 1, maxSessions: 3 },
  });
  expect(() => session.tokenIds).toThrow(expect.objectContaining({ code: 'not_found' }));
  session.clear();
  await session.generate('hello', ask(1));
  expect(session.numTurns).toBe(1);
  model.deleteSession('s');
  await expect(session.generate('more')).rejects.toMatchObject({ code: 'not_found' });
});

test('clear begins anew, with BOS', async () => {
  const { model } = await createToyRuntime();
  const session = model.session('s');
  await session.generate('hello', ask(1));
  session.clear();
  expect(session).toMatchObject({ tokenIds: [], numTurns: 0 });
  const { tokenIds } = await session.generate('hello', ask(1));
  expect(session.tokenIds).toEqual([...model.encodePrompt('hello'), ...tokenIds]);
});

test('with records a session goes on after a restart as if there had been none', async () => {
  const map = new Map<string, Uint8Array>();
  const restart = () => createToyRuntime({ sessions: { records: createMemoryRecords(map) } });
  const { model: before } = await restart();
  await before.session('s').generate('hello', ask(1));
  const known = before.session('s').tokenIds;
  await before.dispose();
  const { model: after, tokenizer } = await restart();
  const session = after.session('s');
  expect(session.tokenIds).toEqual(known);
  const { tokenIds } = await session.generate('more', ask(2));
  const prompt = [...known, ...tokenizer.encode('more')];
  expect(tokenIds).toEqual(toyContinuation(prompt, { ...ask(2), stopIds: END }));
  expect(session.numTurns).toBe(2);
  expect((await restart()).model.session('s').tokenIds).toEqual([...prompt, ...tokenIds]);
});

test('a turn that cannot be kept fails, and did not happen', async () => {
  const records = createMemoryRecords(new Map());
  const { model } = await createToyRuntime({ sessions: { records } });
  const session = model.session('s');
  await session.generate('hello', ask(1));
  const before = session.tokenIds;
  const put = records.put;
  records.put = () => {
    throw new Error('the disk is full');
  };
  await expect(session.generate('more', ask(2))).rejects.toThrow('the disk is full');
  expect(session.tokenIds).toEqual(before);
  records.put = put;
  await session.generate('more', ask(2));
  expect(session.numTurns).toBe(2);
});

test('clients that send whole histories: the turns are counted and the pages kept like those of a session', async () => {
  const { model } = await createToyRuntime();
  const messages = [{ role: 'user' as const, content: 'hello there, dear model' }];
  const first = await model.generate(messages, { ...ask(1), session: 'h' });
  messages.push({ role: 'user' as const, content: 'again' });
  const second = await model.generate(messages, { ...ask(2), session: 'h' });
  expect(second.usage.cachedTokens).toBeGreaterThan(20);
  expect(model.sessions()).toEqual([
    { id: 'h', tenant: 'local', numTurns: 2, numTokens: second.usage.totalTokens, lastUsedMs: 1001 },
  ]);
  expect(first.usage.cachedTokens).toBe(0);
});

test('the two kinds of session are not mixed up', async () => {
  const { model } = await createToyRuntime();
  await model.generate('a', { ...ask(1), session: 'h' });
  await expect(model.session('h').generate('b')).rejects.toMatchObject({
    code: 'invalid_option',
    data: { option: 'session' },
  });
  await model.session('s').generate('a', ask(1));
  await expect(model.generate('a', { session: 's' })).rejects.toMatchObject({
    code: 'invalid_option',
    data: { option: 'session' },
  });
  expect(model.session('s').numTurns).toBe(1);
});

test('names and options are checked, and after dispose there is nothing', async () => {
  const { model } = await createToyRuntime();
  expect(() => model.session('')).toThrow(expect.objectContaining({ data: { option: 'id' } }));
  expect(() => model.session('s', { tenant: '' })).toThrow(expect.objectContaining({ data: { option: 'tenant' } }));
  expect(() => model.session('s', { tenat: 't' } as object)).toThrow(/unknown option "tenat"/);
  const session = model.session('s');
  await model.dispose();
  await expect(session.generate('a')).rejects.toMatchObject({ code: 'not_loaded' });
  for (const call of [() => model.session('s'), () => model.sessions(), () => model.deleteSession('s')]) {
    expect(call).toThrow(expect.objectContaining({ code: 'not_loaded' }));
  }
});

test('a first turn that the disk refused has not been: the next one begins the conversation', async () => {
  const records = createMemoryRecords(new Map());
  const { model } = await createToyRuntime({ sessions: { records } });
  const session = model.session('s');
  const put = records.put;
  records.put = () => {
    throw new Error('no space left on device');
  };
  await expect(session.generate([5, 6, 7], ask(1))).rejects.toThrow('no space left');
  expect([session.numTurns, session.tokenIds]).toEqual([0, []]);
  records.put = put;
  await session.generate([5, 6, 7], ask(1));
  expect(session.numTurns).toBe(1);
});
