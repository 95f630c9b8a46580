import { expect, test } from 'vitest';
import { createEchoModel } from '../../../test/support/echo-model.ts';
import { createChatSession, DEFAULT_CHAT_TOKENS } from './session.ts';

const never = new AbortController().signal;
const options = { signal: never, onText: () => {} };

test('sends the system prompt and all previous turns', async () => {
  const model = createEchoModel(100);
  const session = createChatSession(model, { temperature: 0 }, 'be kind');
  await session.ask('one two', options);
  await session.ask('three', options);
  expect(model.calls.map(({ messages }) => messages.map(({ role, content }) => `${role}: ${content}`))).toEqual([
    ['system: be kind', 'user: one two'],
    ['system: be kind', 'user: one two', 'assistant: re: one two', 'user: three'],
  ]);
  expect(model.calls[0]!.options).toMatchObject({ temperature: 0 });
  session.setSystem(null);
  session.clear();
  await session.ask('four', options);
  expect(model.calls[2]!.messages).toEqual([{ role: 'user', content: 'four' }]);
});

test('limits answers to the free context and to maxTokens or its default', async () => {
  const maxTokens = async (maxContext: number, params = {}) => {
    const model = createEchoModel(maxContext);
    await createChatSession(model, params, null).ask('a b c', options);
    return model.calls[0]!.options.maxTokens;
  };
  expect(await maxTokens(100_000)).toBe(DEFAULT_CHAT_TOKENS);
  expect(await maxTokens(100)).toBe(97);
  expect(await maxTokens(100, { maxTokens: 5 })).toBe(5);
  expect(await maxTokens(100, { maxTokens: 500 })).toBe(97);
});

test('reports a full context, but not for an answer cut off by maxTokens', async () => {
  const full = await createChatSession(createEchoModel(5), {}, null).ask('a b c', options);
  expect(full).toMatchObject({
    isStopped: false,
    isContextFull: true,
    answer: { text: 're: a', finishReason: 'length' },
  });
  const short = await createChatSession(createEchoModel(50), { maxTokens: 2 }, null).ask('a b c', options);
  expect(short).toMatchObject({ isContextFull: false, answer: { finishReason: 'length' } });
});

test('rejects a prompt longer than the context and leaves the conversation unchanged', async () => {
  const session = createChatSession(createEchoModel(8), {}, null);
  await session.ask('a', options);
  const before = session.messages;
  await expect(session.ask('b c d e f g h i j', options)).rejects.toMatchObject({
    code: 'context_overflow',
    data: { promptTokens: 9, maxContext: 8 },
  });
  expect(session.messages).toBe(before);
});

test('drops the oldest turns that leave no space for an answer', async () => {
  const model = createEchoModel(20);
  const session = createChatSession(model, {}, 'be kind');
  for (const question of ['one', 'two', 'three']) await session.ask(question, options);
  const turn = await session.ask('a b c d e f g h', options);
  expect(turn).toMatchObject({ isStopped: false, numDropped: 4 });
  expect(model.calls.at(-1)!.messages.map(({ content }) => content)).toEqual([
    'be kind',
    'three',
    're: three',
    'a b c d e f g h',
  ]);
  expect(session.messages).toHaveLength(4);
});

test('regenerates the last answer with another seed', async () => {
  const model = createEchoModel(100);
  const session = createChatSession(model, { seed: 7 }, null);
  expect(() => session.regenerate(options)).toThrow('no answer to regenerate yet');
  await session.ask('a', options);
  await session.regenerate(options);
  await session.regenerate(options);
  await session.ask('b', options);
  expect(model.calls.map((call) => [call.messages.length, call.options.seed])).toEqual([
    [1, 7],
    [1, 8],
    [1, 9],
    [3, 7],
  ]);
  expect(session.messages).toHaveLength(4);
});

test('keeps the received part of a stopped answer', async () => {
  const model = createEchoModel(100);
  model.isStuck = true;
  const session = createChatSession(model, {}, null);
  const controller = new AbortController();
  const turn = await session.ask('a b', { signal: controller.signal, onText: () => controller.abort() });
  expect(turn).toEqual({ isStopped: true, user: 'a b', text: 're:' });
  expect(session.messages.at(-1)).toEqual({ role: 'assistant', content: 're:' });
});
