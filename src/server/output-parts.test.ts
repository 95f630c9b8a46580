import { expect, test } from 'vitest';
import type { AnswerChunk } from '../runtime/requests/answer-chunks.ts';
import { collectParts, toPartEvents } from './output-parts.ts';

const EMPTY = { choice: 0, text: '', reasoning: '', toolCalls: [], tokenIds: [], logprobs: null, textLogprobs: null };
const finished = { ...EMPTY, finishReason: 'tool_calls' } as unknown as AnswerChunk;
const text = (said: string): AnswerChunk => ({ ...EMPTY, text: said, finishReason: null });
const call = (index: number, id: string, args: string, isFirst = true): AnswerChunk => ({
  ...EMPTY,
  toolCalls: [{ index, id, name: `f${index}`, isFirst, arguments: args, outcome: null }],
  finishReason: null,
});

async function* from(events: readonly AnswerChunk[]) {
  yield* events;
}

test('opens and closes parts one after the other', async () => {
  const generation = [
    text('a'),
    text('b'),
    call(0, 'x', ''),
    call(0, 'x', '{}', false),
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

test('an empty answer has one empty text part if requested', async () => {
  expect((await collectParts(from([finished]), { hasText: true })).parts).toEqual([
    { type: 'text', text: '', logprobs: null },
  ]);
  expect((await collectParts(from([finished]), { hasText: false })).parts).toEqual([]);
});

test('reasoning without an answer is followed by an empty text part if requested', async () => {
  const generation: AnswerChunk[] = [{ ...EMPTY, reasoning: 'hm', finishReason: null }, finished];
  const types = async (hasText: boolean) =>
    (await collectParts(from(generation), { hasText })).parts.map(({ type }) => type);
  expect(await types(true)).toEqual(['reasoning', 'text']);
  expect(await types(false)).toEqual(['reasoning']);
});
