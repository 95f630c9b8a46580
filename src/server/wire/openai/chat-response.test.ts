import { describe, expect, test } from 'vitest';
import { collect, endOf, pieceOf, streamOf, USAGE } from '../../../../test/support/answer-chunks.ts';
import { createByteTokenizer } from '../../../../test/support/byte-tokenizer.ts';
import type { AnswerChunk } from '../../../runtime/requests/answer-chunks.ts';
import { toWireTimings } from '../llama-server/timings.ts';
import { type AnswerHead, collectChat, isLongToWrite } from './chat-response.ts';
import { writeChatStream } from './chat-stream.ts';
import { toWireUsage } from './usage.ts';

const tokenizer = createByteTokenizer();
const HEAD: AnswerHead = { id: 'chatcmpl-1', created: 5, model: 'm', fingerprint: 'fp', extensions: { memory: 1 } };
const call = (more: object) => ({
  index: 0,
  id: 'c1',
  name: 'f',
  isFirst: true,
  arguments: '',
  outcome: null,
  ...more,
});
const sampled = (tokenId: number, numTop = 0) => ({
  tokenId,
  logprob: -1,
  top: Array.from({ length: numTop }, () => ({ tokenId, logprob: -1 })),
});
const CALLS: AnswerChunk[] = [
  pieceOf({ reasoning: 'hm' }),
  pieceOf({ toolCalls: [call({ arguments: '{"a"' })] }),
  pieceOf({ toolCalls: [call({ isFirst: false, arguments: '' })] }),
  pieceOf({ toolCalls: [call({ isFirst: false, arguments: ':1}' }), call({ index: 1, id: 'c2', name: 'g' })] }),
  endOf({ finishReason: 'tool_calls' }),
];
const TEXT: AnswerChunk[] = [
  pieceOf({ text: 'a', textLogprobs: [sampled(97)] }),
  pieceOf({ text: 'b', textLogprobs: [sampled(98)] }),
  pieceOf({ textLogprobs: [] }),
  endOf(),
];
const USED = {
  prompt_tokens: 10,
  completion_tokens: 5,
  total_tokens: 15,
  prompt_tokens_details: { cached_tokens: 4, audio_tokens: 0 },
  completion_tokens_details: {
    reasoning_tokens: 2,
    audio_tokens: 0,
    accepted_prediction_tokens: 0,
    rejected_prediction_tokens: 0,
  },
};
const wire = (token: string) => ({ token, logprob: -1, bytes: [token.charCodeAt(0)], top_logprobs: [] });

/** Checks that the pieces are the same text as the object. */
async function write(events: readonly AnswerChunk[], numChoices = 1, isOlderForm = false): Promise<any> {
  const collector = await collectChat(streamOf(events), { numChoices, tokenizer, isOlderForm });
  const whole = JSON.parse(JSON.stringify(collector.write(HEAD))) as unknown;
  expect(JSON.parse([...collector.writePieces(HEAD)].join(''))).toEqual(whole);
  return whole;
}

describe('a chat completion', () => {
  test('has a text with its log-probabilities', async () => {
    expect(await write(TEXT)).toEqual({
      id: 'chatcmpl-1',
      object: 'chat.completion',
      created: 5,
      model: 'm',
      choices: [
        {
          index: 0,
          message: { role: 'assistant', content: 'ab', refusal: null },
          finish_reason: 'stop',
          logprobs: { content: [wire('a'), wire('b')], refusal: null },
        },
      ],
      usage: USED,
      system_fingerprint: 'fp',
      timings: toWireTimings(endOf()),
      memory: 1,
    });
  });

  test('has calls, in either form', async () => {
    const message = { role: 'assistant', content: null, refusal: null, reasoning_content: 'hm' };
    const made = (id: string, name: string, args: string) => ({
      id,
      type: 'function',
      function: { name, arguments: args },
    });
    expect((await write(CALLS)).choices).toEqual([
      {
        index: 0,
        message: { ...message, tool_calls: [made('c1', 'f', '{"a":1}'), made('c2', 'g', '')] },
        finish_reason: 'tool_calls',
        logprobs: null,
      },
    ]);
    expect((await write(CALLS, 1, true)).choices).toMatchObject([
      { message: { ...message, function_call: { name: 'f', arguments: '{"a":1}' } }, finish_reason: 'function_call' },
    ]);
    expect((await write([endOf()], 1, true)).choices).toMatchObject([
      { message: { content: '' }, finish_reason: 'stop' },
    ]);
  });

  test('has a text beside its calls', async () => {
    const { choices } = await write([pieceOf({ text: 'a' }), ...CALLS]);
    expect(choices[0].message).toMatchObject({ content: 'a', tool_calls: [{}, {}] });
  });

  test('has several answers, whose prompt counts once', async () => {
    const { choices, usage } = await write(
      [
        pieceOf({ choice: 1, text: 'b', textLogprobs: [] }),
        pieceOf({ choice: 0, text: 'a' }),
        endOf({ choice: 1 }),
        endOf({ finishReason: 'length' }),
      ],
      2,
    );
    expect(choices).toMatchObject([
      { index: 0, message: { content: 'a' }, finish_reason: 'length', logprobs: null },
      { index: 1, message: { content: 'b' }, finish_reason: 'stop', logprobs: { content: [] } },
    ]);
    expect(usage).toMatchObject({ prompt_tokens: 10, completion_tokens: 10, total_tokens: 20 });
  });

  test('has no log-probabilities for a piece without tokens', async () => {
    expect((await write([pieceOf({ textLogprobs: [] }), endOf()])).choices[0].logprobs).toBeNull();
  });
});

test.each([
  [[null], false],
  [[[sampled(97, 1999)]], false],
  [[[sampled(97, 2000)]], true],
  [[[sampled(97, 999)], null, [sampled(97, 1000)]], true],
])('whether tokens take long to write', (choices, isLong) => {
  expect(isLongToWrite(choices)).toBe(isLong);
});

test.each([
  [1999, 1],
  [2000, 1],
  [2001, 2],
  [4000, 2],
  [4001, 3],
])('%i tokens are written in %i pieces', async (numTokens, numPieces) => {
  const textLogprobs = Array.from({ length: numTokens }, () => sampled(97));
  const collector = await collectChat(streamOf([pieceOf({ text: 'a', textLogprobs }), endOf()]), {
    numChoices: 1,
    tokenizer,
    isOlderForm: false,
  });
  const pieces = [...collector.writePieces(HEAD)];
  expect(pieces.filter((piece) => piece.includes('"token"'))).toHaveLength(numPieces);
  expect(JSON.parse(pieces.join('')).choices[0].logprobs.content).toHaveLength(numTokens);
  expect(collector.isLong).toBe(numTokens > 2000);
});

describe('a streamed chat', () => {
  const stream = async (events: readonly AnswerChunk[], more: object = {}): Promise<any[]> => {
    const options = { numChoices: 1, tokenizer, hasUsageChunk: false, isOlderForm: false, ...more };
    const messages = await collect(writeChatStream(HEAD, streamOf(events), options));
    expect(messages.at(-1)).toEqual({ data: '[DONE]' });
    return messages.slice(0, -1).map(({ data }) => JSON.parse(data) as unknown);
  };
  const deltas = (chunks: any[]) => chunks.flatMap(({ choices }) => choices).map(({ delta }) => delta);

  test('has a role, a text and an end', async () => {
    const base = {
      id: 'chatcmpl-1',
      object: 'chat.completion.chunk',
      created: 5,
      model: 'm',
      system_fingerprint: 'fp',
    };
    const chunk = (delta: object, more: object = {}) => ({
      ...base,
      choices: [{ index: 0, delta, logprobs: null, finish_reason: null, ...more }],
    });
    const logprobs = (token: string) => ({ logprobs: { content: [wire(token)], refusal: null } });
    expect(await stream(TEXT)).toEqual([
      { ...chunk({ role: 'assistant', content: '', refusal: null }), memory: 1 },
      chunk({ content: 'a' }, logprobs('a')),
      chunk({ content: 'b' }, logprobs('b')),
      { ...chunk({}, { finish_reason: 'stop' }), timings: toWireTimings(endOf()) },
    ]);
  });

  test('has thoughts and pieces of calls', async () => {
    const made = (id: string, index: number, name: string, args: string) => ({
      tool_calls: [{ index, id, type: 'function', function: { name, arguments: args } }],
    });
    expect(deltas(await stream(CALLS)).slice(1)).toEqual([
      { reasoning_content: 'hm' },
      made('c1', 0, 'f', '{"a"'),
      { tool_calls: [{ index: 0, function: { arguments: ':1}' } }] },
      made('c2', 1, 'g', ''),
      {},
    ]);
    const older = await stream(CALLS.toSpliced(3, 1), { isOlderForm: true });
    expect(deltas(older).slice(2)).toEqual([{ function_call: { name: 'f', arguments: '{"a"' } }, {}]);
    expect(older.at(-1).choices[0].finish_reason).toBe('function_call');
  });

  test('has its usage in the last chunk if that is wanted, and null before', async () => {
    const chunks = await stream([endOf({ choice: 1 }), endOf()], { numChoices: 2, hasUsageChunk: true });
    expect(chunks.map(({ usage }) => usage)).toEqual([
      null,
      null,
      null,
      null,
      {
        ...USED,
        completion_tokens: 10,
        total_tokens: 20,
        completion_tokens_details: { ...USED.completion_tokens_details, reasoning_tokens: 4 },
      },
    ]);
    expect(chunks.at(-1).choices).toEqual([]);
    expect((await stream([endOf()])).some((chunk) => 'usage' in chunk)).toBe(false);
  });
});

test('discarded tokens are part of the usage if reflection was on', () => {
  expect(toWireUsage({ ...USAGE, discardedTokens: null })).toEqual(USED);
  expect(toWireUsage({ ...USAGE, discardedTokens: 0 })).toMatchObject({
    completion_tokens_details: { discarded_tokens: 0 },
  });
});
