import { describe, expect, test } from 'vitest';
import { collect, endOf, pieceOf, streamOf } from '../../../../test/support/answer-chunks.ts';
import { type AnswerHead, writeAnswer, writeAnswerStream, writeLoaded } from './answer.ts';

const HEAD: AnswerHead = {
  model: 'm',
  kind: 'chat',
  hasThinking: true,
  createdAt: () => 'now',
  loadMs: 2,
  elapsedMs: () => 50.5,
};
const call = (more: object) => ({
  index: 0,
  id: 'c1',
  name: 'f',
  isFirst: true,
  arguments: '',
  outcome: null,
  ...more,
});
const END = {
  model: 'm',
  created_at: 'now',
  done: true,
  done_reason: 'stop',
  total_duration: 50_500_000,
  load_duration: 2_000_000,
  prompt_eval_count: 10,
  prompt_eval_duration: 30_000_000,
  eval_count: 5,
  eval_duration: 20_000_000,
};
const toolCall = (args: object, index = 0, id = 'c1') => ({ id, function: { index, name: 'f', arguments: args } });

const ANSWER = [
  pieceOf({ reasoning: 'hm' }),
  pieceOf({ text: 'a' }),
  pieceOf({}),
  pieceOf({ toolCalls: [call({ arguments: '{"x"' })] }),
  pieceOf({ toolCalls: [call({ isFirst: false, arguments: ':1}', outcome: 'complete' })] }),
  pieceOf({ toolCalls: [call({ index: 1, id: 'c2', outcome: 'complete' })] }),
  pieceOf({ toolCalls: [call({ index: 2, id: 'c3', arguments: '{"x', outcome: 'cut' })] }),
  endOf({ finishReason: 'tool_calls' }),
];

describe('a chat', () => {
  const message = (more: object) => ({ role: 'assistant', content: '', ...more });
  const calls = [toolCall({ x: 1 }), toolCall({}, 1, 'c2')];

  test('is one object with whole calls', async () => {
    expect(await writeAnswer(HEAD, streamOf(ANSWER))).toEqual({
      ...END,
      message: message({ content: 'a', thinking: 'hm', tool_calls: calls }),
    });
  });

  test('is streamed without empty pieces', async () => {
    const piece = (more: object) => ({ model: 'm', created_at: 'now', done: false, message: message(more) });
    expect(await collect(writeAnswerStream(HEAD, streamOf(ANSWER)))).toEqual([
      piece({ thinking: 'hm' }),
      piece({ content: 'a' }),
      piece({ tool_calls: [calls[0]] }),
      piece({ tool_calls: [calls[1]] }),
      { ...END, message: message({}) },
    ]);
  });

  test('has its last text before the end', async () => {
    const events = await collect(writeAnswerStream(HEAD, streamOf([endOf({ finishReason: 'length' })])));
    expect(events).toEqual([{ ...END, done_reason: 'length', message: message({}) }]);
    const last = { ...endOf(), text: 'b' };
    expect(await collect(writeAnswerStream(HEAD, streamOf([last])))).toMatchObject([
      { done: false, message: { content: 'b' } },
      { done: true, message: { content: '' } },
    ]);
  });

  test('has no thoughts unless they are wanted', async () => {
    expect(await writeAnswer({ ...HEAD, hasThinking: false }, streamOf(ANSWER.slice(-1)))).toEqual({
      ...END,
      message: message({}),
    });
    expect(await writeAnswer({ ...HEAD, hasThinking: false }, streamOf(ANSWER))).toMatchObject({
      message: expect.not.objectContaining({ thinking: 'hm' }),
    });
  });
});

test('a completion has its text in `response`', async () => {
  const head: AnswerHead = { ...HEAD, kind: 'generate' };
  const answer = [pieceOf({ reasoning: 'hm', text: 'a' }), pieceOf({ text: 'b' }), endOf()];
  expect(await writeAnswer(head, streamOf(answer))).toEqual({ ...END, response: 'ab', thinking: 'hm' });
  const base = { model: 'm', created_at: 'now', done: false };
  expect(await collect(writeAnswerStream(head, streamOf(answer)))).toEqual([
    { ...base, response: 'a', thinking: 'hm' },
    { ...base, response: 'b' },
    { ...END, response: '' },
  ]);
});

test('a model that was only loaded has an empty answer', () => {
  const base = { model: 'm', created_at: 'now', done: true };
  expect(writeLoaded(HEAD, 'load')).toEqual({
    ...base,
    done_reason: 'load',
    message: { role: 'assistant', content: '' },
  });
  expect(writeLoaded({ ...HEAD, kind: 'generate' }, 'unload')).toEqual({
    ...base,
    done_reason: 'unload',
    response: '',
  });
});
