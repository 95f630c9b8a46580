import { expect, test } from 'vitest';
import type { FinishedEvent, AnswerEvent } from '../runtime/requests/answer-events.ts';
import { collectParts, toPartEvents } from './output-parts.ts';

const finished = { type: 'finished', choice: 0, finishReason: 'tool_calls' } as FinishedEvent;
const text = (said: string): AnswerEvent => ({ type: 'text', choice: 0, text: said, logprobs: null });
const call = (index: number, id: string | null, args: string): AnswerEvent => ({
  type: 'tool_call',
  choice: 0,
  call: index,
  id,
  name: id === null ? null : `f${index}`,
  arguments: args,
});

async function* from(events: readonly AnswerEvent[]) {
  yield* events;
}

test('parts open and close one after the other', async () => {
  const generation = [
    text('a'),
    text('b'),
    call(0, 'x', ''),
    call(0, null, '{}'),
    call(1, 'y', '[1]'),
    text('c'),
    finished,
  ];
  const events: string[] = [];
  for await (const event of toPartEvents(from(generation), { hasText: true })) {
    events.push(
      event.type === 'finished'
        ? 'finished'
        : `${event.type} ${event.index}${event.type === 'delta' ? ` ${event.text}` : ''}`,
    );
  }
  expect(events).toEqual([
    'open 0',
    'delta 0 a',
    'delta 0 b',
    'close 0',
    'open 1',
    'delta 1 {}',
    'close 1',
    'open 2',
    'delta 2 [1]',
    'close 2',
    'open 3',
    'delta 3 c',
    'close 3',
    'finished',
  ]);
  const { parts } = await collectParts(from(generation), { hasText: true });
  expect(parts).toEqual([
    { type: 'text', text: 'ab', logprobs: null },
    { type: 'tool_call', id: 'x', name: 'f0', arguments: '{}' },
    { type: 'tool_call', id: 'y', name: 'f1', arguments: '[1]' },
    { type: 'text', text: 'c', logprobs: null },
  ]);
});

test('an answer of nothing is one empty text where that is wanted', async () => {
  expect((await collectParts(from([finished]), { hasText: true })).parts).toEqual([
    { type: 'text', text: '', logprobs: null },
  ]);
  expect((await collectParts(from([finished]), { hasText: false })).parts).toEqual([]);
});

test('thoughts that led to nothing are followed by an empty text, where one is wanted', async () => {
  const generation = [{ type: 'reasoning', choice: 0, text: 'hm' } as AnswerEvent, finished];
  const types = async (hasText: boolean) =>
    (await collectParts(from(generation), { hasText })).parts.map(({ type }) => type);
  expect(await types(true)).toEqual(['reasoning', 'text']);
  expect(await types(false)).toEqual(['reasoning']);
});
