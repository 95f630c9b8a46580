import { expect, test } from 'vitest';
import type { AnswerChunk, LastChunk } from '../answer-chunks.ts';
import { readRemoteEvents } from './remote-events.ts';

/** The chunks of a stream; each message takes 50 ms, from 100 on. */
async function read(messages: readonly unknown[], numChoices = 1): Promise<AnswerChunk[]> {
  let nowMs = 100;
  async function* stream(): AsyncGenerator<string> {
    for (const message of messages) {
      nowMs += 50;
      yield typeof message === 'string' ? message : JSON.stringify(message);
    }
  }
  const options = { numChoices, seed: 4, now: () => nowMs, startMs: 100 };
  const chunks: AnswerChunk[] = [];
  for await (const one of readRemoteEvents(stream(), options)) chunks.push(one);
  return chunks;
}

const chunk = (delta: object, more: object = {}): object => ({ choices: [{ index: 0, delta, ...more }] });
const END = chunk({}, { finish_reason: 'stop' });
const usage = (completion_tokens: number, more: object = {}): object => ({ choices: [], usage: { prompt_tokens: 10, completion_tokens, ...more } }); // prettier-ignore
const last = (chunks: readonly AnswerChunk[]): LastChunk => chunks.at(-1) as LastChunk;

test('text and reasoning are passed on, under both names of reasoning, and empty pieces are not', async () => {
  const chunks = await read([
    chunk({ role: 'assistant', content: '' }),
    chunk({ reasoning_content: 'Hm' }),
    chunk({ reasoning: 'm' }),
    { choices: [{ delta: { content: 'Yes' } }] },
    chunk({ content: null }),
    { choices: null },
    { choices: [null, 1] },
    { choices: [{ index: 0, delta: ['x'] }] },
    { error: null, ...(END as object) },
    '[DONE]',
    'not read',
  ]);
  expect(chunks.slice(0, -1)).toEqual(
    [
      { reasoning: 'Hm', text: '' },
      { reasoning: 'm', text: '' },
      { reasoning: '', text: 'Yes' },
    ].map((piece) => ({ ...piece, choice: 0, toolCalls: [], tokenIds: [], logprobs: null, textLogprobs: null, finishReason: null })), // prettier-ignore
  );
  expect(last(chunks)).toMatchObject({ choice: 0, text: '', finishReason: 'stop', seed: 4, stopString: null });
});

test.each([
  ['stop', 'stop'],
  ['length', 'length'],
  ['tool_calls', 'tool_calls'],
  ['function_call', 'tool_calls'],
  ['content_filter', 'stop'],
  ['eos', 'stop'],
  ['constructor', 'stop'],
])('the finish reason "%s" is ours "%s"', async (given, ours) => {
  expect(last(await read([chunk({}, { finish_reason: given })])).finishReason).toBe(ours);
});

test('a tool call keeps the id and the name of its first piece, or gets an id', async () => {
  const call = (more: object, name?: string, piece?: string): object => ({ ...more, function: { name, arguments: piece } }); // prettier-ignore
  const chunks = await read([
    chunk({ tool_calls: [call({ index: 0, id: 'a' }, 'f'), call({ index: 127 }, 'g', '{')] }),
    chunk({ tool_calls: [call({ index: 127, id: 'late' }, 'other', '}')] }),
    chunk({ tool_calls: [call({}, undefined, '{}'), call({}, 'h')] }),
    chunk({}, { finish_reason: 'tool_calls' }),
  ]);
  expect(chunks.slice(0, -1).map(({ toolCalls }) => toolCalls)).toEqual([
    [
      { index: 0, id: 'a', name: 'f', isFirst: true, arguments: '', outcome: null },
      { index: 127, id: 'call_0_127', name: 'g', isFirst: true, arguments: '{', outcome: null },
    ],
    [{ index: 127, id: 'call_0_127', name: 'g', isFirst: false, arguments: '}', outcome: null }],
    // Without an index, its place in the list.
    [
      { index: 0, id: 'a', name: 'f', isFirst: false, arguments: '{}', outcome: null },
      { index: 1, id: 'call_0_1', name: 'h', isFirst: true, arguments: '', outcome: null },
    ],
  ]);
});

test.each([
  ['no JSON', ['{"a'], 'it sent an event of 3 characters that is not JSON'],
  ['a list', ['[]'], 'it sent an event that is no object'],
  ['null', ['null'], 'it sent an event that is no object'],
  ['a number', ['1'], 'it sent an event that is no object'],
  ['an error', [{ error: { message: 'secret' } }], 'it sent an error in the middle of its answer'],
  ['an answer too many', [{ choices: [{ index: 1 }] }], 'it sent an index of 1, of 1'],
  ['an answer below the first', [{ choices: [{ index: -1 }] }], 'it sent an index of -1, of 1'],
  ['half an index', [{ choices: [{ index: 0.5 }] }], 'it sent an index of 0.5, of 1'],
  ['an index in words', [{ choices: [{ index: 'the secret of the first answer' }] }], 'it sent an index that is no number'], // prettier-ignore
  ['too many calls', [chunk({ tool_calls: [{ index: 128, function: { name: 'f' } }] })], 'it sent an index of 128, of 128'], // prettier-ignore
  ['a call without a name', [chunk({ tool_calls: [{ index: 0, function: {} }] })], 'it sent a tool call without a name'], // prettier-ignore
  ['no end', [chunk({ content: 'a' })], 'it sent an answer that ends in the middle: 1 were asked for, number 0 has no end'], // prettier-ignore
  ['no end before it is done', ['[DONE]', END], 'it sent an answer that ends in the middle: 1 were asked for, number 0 has no end'], // prettier-ignore
])('a stream with %s is broken', async (_name, messages, message) => {
  await expect(read(messages)).rejects.toMatchObject({ code: 'remote_failed', message });
});

test('each of several answers needs its end, and the first one has the usage of all', async () => {
  const end = (index: number): object => ({ choices: [{ index, delta: {}, finish_reason: 'length' }] });
  await expect(read([end(0), end(2)], 3)).rejects.toThrow('3 were asked for, number 1 has no end');
  const chunks = await read([{ choices: [{ index: 1, delta: { content: 'b' } }] }, end(1), end(0), usage(4)], 2);
  expect(chunks.map((one) => [one.choice, one.text, one.finishReason])).toEqual([
    [1, 'b', null],
    [0, '', 'length'],
    [1, '', 'length'],
  ]);
  expect(chunks.slice(1).map((one) => (one as LastChunk).usage)).toMatchObject([
    { promptTokens: 10, completionTokens: 4, totalTokens: 14 },
    { promptTokens: 0, completionTokens: 0, totalTokens: 0 },
  ]);
});

test.each<[string, unknown, object]>([
  [
    'in full',
    { prompt_tokens: 10, completion_tokens: 8, prompt_tokens_details: { cached_tokens: 6 }, completion_tokens_details: { reasoning_tokens: 5, accepted_prediction_tokens: 2, rejected_prediction_tokens: 3 } }, // prettier-ignore
    { promptTokens: 10, completionTokens: 8, totalTokens: 18, cachedTokens: 6, reasoningTokens: 5, acceptedDraftTokens: 2, rejectedDraftTokens: 3 }, // prettier-ignore
  ],
  [
    'of parts that are larger than the whole',
    { prompt_tokens: 1, completion_tokens: 2, prompt_tokens_details: { cached_tokens: 6 }, completion_tokens_details: { reasoning_tokens: 5, accepted_prediction_tokens: 4 } }, // prettier-ignore
    { promptTokens: 1, completionTokens: 2, cachedTokens: 1, reasoningTokens: 2, acceptedDraftTokens: 2, rejectedDraftTokens: 0 }, // prettier-ignore
  ],
  ['that is nonsense', { prompt_tokens: -1, completion_tokens: '2' }, { promptTokens: 0, completionTokens: 0 }],
  ['of zero', { prompt_tokens: 0, completion_tokens: 1.5 }, { promptTokens: 0, completionTokens: 0, totalTokens: 0 }],
  ['that is null', null, { promptTokens: 0, totalTokens: 0 }],
  ['that is no object', 5, { promptTokens: 0, totalTokens: 0 }],
])('usage %s', async (_name, given, expected) => {
  expect(last(await read([END, { choices: [], usage: given }])).usage).toMatchObject(expected);
});

test('later events without usage do not take it away', async () => {
  expect(last(await read([usage(3), { ...(END as object), usage: null }])).usage.completionTokens).toBe(3);
});

test('times count from the request, speed from the first piece on', async () => {
  // The pieces come after 50 and 100 ms, the end after 200.
  const pieces = [chunk({ content: 'a' }), chunk({ content: 'b' }), END];
  expect(last(await read([...pieces, usage(4)])).timings).toEqual({
    firstTokenMs: 50,
    queuedMs: 0,
    promptMs: 50,
    generateMs: 150,
    promptTokensPerSecond: null,
    tokensPerSecond: 20, // three tokens after the first
  });
  expect(last(await read([...pieces, usage(1)])).timings.tokensPerSecond).toBeNull();
  expect(last(await read([usage(2), { choices: [{ delta: { content: 'a' }, finish_reason: 'stop' }] }])).timings).toMatchObject({ firstTokenMs: 100, generateMs: 0, tokensPerSecond: null }); // prettier-ignore
  expect(last(await read([usage(0), END])).timings).toMatchObject({ firstTokenMs: 100, generateMs: 0 });
});
