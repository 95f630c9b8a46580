import { describe, expect, test } from 'vitest';
import { collect, endOf, pieceOf, streamOf } from '../../../../test/support/answer-chunks.ts';
import { createByteTokenizer } from '../../../../test/support/byte-tokenizer.ts';
import type { AnswerChunk } from '../../../runtime/requests/answer-chunks.ts';
import { toWireTimings } from '../llama-server/timings.ts';
import type { AnswerHead } from './chat-response.ts';
import { collectCompletion, type CompletionOptions, writeCompletionStream } from './completion-response.ts';

const BOS = 256;
const tokenizer = { ...createByteTokenizer(), bosId: BOS };
const HEAD: AnswerHead = { id: 'cmpl-1', created: 5, model: 'm', fingerprint: 'fp', extensions: { memory: 1 } };
const sampled = (tokenId: number, logprob: number | null = -1) => ({ tokenId, logprob, top: [] });
const optionsOf = (more: Partial<CompletionOptions> = {}, prompts: unknown[] = ['p'], numChoices = 1) =>
  ({
    generation: { prompts, numChoices },
    hasUsageChunk: false,
    hasEcho: false,
    isPromptOnly: false,
    tokenizer,
    ...more,
  }) as CompletionOptions;
const TEXT: AnswerChunk[] = [
  pieceOf({ text: 'a', textLogprobs: [sampled(97)] }),
  pieceOf({ textLogprobs: [] }),
  pieceOf({ text: 'b', textLogprobs: [sampled(98)] }),
  endOf(),
];

/** Checks that the pieces are the same text as the object. */
async function write(events: readonly AnswerChunk[], options = optionsOf()): Promise<any> {
  const collected = await collectCompletion(HEAD, streamOf(events), options);
  const whole = JSON.parse(JSON.stringify(collected.write())) as unknown;
  expect(JSON.parse([...collected.writePieces()].join(''))).toEqual(whole);
  return whole;
}

describe('a completion', () => {
  test('has a text with its log-probabilities', async () => {
    expect(await write(TEXT)).toMatchObject({
      id: 'cmpl-1',
      object: 'text_completion',
      created: 5,
      model: 'm',
      choices: [
        {
          text: 'ab',
          index: 0,
          logprobs: { tokens: ['a', 'b'], token_logprobs: [-1, -1], top_logprobs: [{}, {}], text_offset: [0, 1] },
          finish_reason: 'stop',
        },
      ],
      usage: { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 },
      system_fingerprint: 'fp',
      timings: toWireTimings(endOf()),
      memory: 1,
    });
    const { choices } = await write([pieceOf({ text: 'a' }), pieceOf({ textLogprobs: [] }), endOf()]);
    expect(choices[0].logprobs).toBeNull();
  });

  test('has the answers to each prompt in order, and may repeat the prompts', async () => {
    const events = [
      ...['a', 'b', 'c', 'd'].map((text, choice) => pieceOf({ choice, text })),
      ...[3, 2, 1, 0].map((choice) => endOf({ choice })),
    ];
    const texts = async (hasEcho: boolean) =>
      (await write(events, optionsOf({ hasEcho }, ['p', [113]], 2))).choices.map(({ text }: any) => text);
    expect(await texts(false)).toEqual(['a', 'b', 'c', 'd']);
    expect(await texts(true)).toEqual(['pa', 'pb', 'qc', 'qd']);
    const { usage } = await write(events, optionsOf({}, ['p', [113]], 2));
    expect(usage).toMatchObject({ prompt_tokens: 20, completion_tokens: 20 });
  });

  test('has the log-probabilities of its prompt before those of its text', async () => {
    const prompt = [sampled(BOS, null), sampled(112, -3)];
    const tokensOf = async (prompts: unknown[], promptLogprobs = prompt, pieces = TEXT.slice(0, 1)) => {
      const options = optionsOf({ hasEcho: true }, prompts);
      const { choices } = await write([...pieces, endOf({ promptLogprobs })], options);
      return [choices[0].logprobs.tokens, choices[0].logprobs.token_logprobs];
    };
    // Without the token that was added before a text.
    expect(await tokensOf(['p'])).toEqual([
      ['p', 'a'],
      [-3, -1],
    ]);
    expect(await tokensOf([[BOS, 112]])).toEqual([
      ['<|im_start|>', 'p', 'a'],
      [null, -3, -1],
    ]);
    expect(await tokensOf(['p'], [sampled(112, null)], [])).toEqual([['p'], [null]]);
  });

  test('has only the prompt if nothing was to be generated', async () => {
    const events = [pieceOf({ text: 'a', textLogprobs: [sampled(97)] }), endOf()];
    const { choices, usage } = await write(events, optionsOf({ isPromptOnly: true, hasEcho: true }));
    expect(choices).toMatchObject([{ text: 'p', logprobs: null }]);
    expect(usage).toMatchObject({ prompt_tokens: 10, completion_tokens: 0, total_tokens: 10 });
  });

  test('is long with more than 2000 tokens', async () => {
    const isLong = async (numTokens: number) => {
      const textLogprobs = Array.from({ length: numTokens }, () => sampled(97));
      return (await collectCompletion(HEAD, streamOf([pieceOf({ textLogprobs }), endOf()]), optionsOf())).isLong;
    };
    expect([await isLong(2000), await isLong(2001)]).toEqual([false, true]);
  });
});

describe('a streamed completion', () => {
  const stream = async (events: readonly AnswerChunk[], options = optionsOf()): Promise<any[]> => {
    const messages = await collect(writeCompletionStream(HEAD, streamOf(events), options));
    expect(messages.at(-1)).toEqual({ data: '[DONE]' });
    return messages.slice(0, -1).map(({ data }) => JSON.parse(data) as unknown);
  };
  const base = { id: 'cmpl-1', object: 'text_completion', created: 5, model: 'm', system_fingerprint: 'fp' };
  const choice = (text: string, more: object = {}) => ({
    text,
    index: 0,
    logprobs: null,
    finish_reason: null,
    ...more,
  });
  const logprobs = (token: string, offset: number) => ({
    logprobs: { tokens: [token], token_logprobs: [-1], top_logprobs: [{}], text_offset: [offset] },
  });

  test('has its pieces and an end', async () => {
    expect(await stream(TEXT)).toEqual([
      { ...base, choices: [choice('a', logprobs('a', 0))], memory: 1 },
      { ...base, choices: [choice('b', logprobs('b', 1))] },
      { ...base, choices: [choice('', { finish_reason: 'stop' })] },
    ]);
  });

  test('starts with the prompt if that is wanted', async () => {
    const chunks = await stream([pieceOf({ text: 'a' }), endOf()], optionsOf({ hasEcho: true }));
    expect(chunks.map(({ choices }) => choices[0].text)).toEqual(['p', 'a', '']);
    expect(chunks.map(({ memory }) => memory)).toEqual([1, undefined, undefined]);
  });

  test('has only the prompt if nothing was to be generated', async () => {
    const options = optionsOf({ hasEcho: true, isPromptOnly: true });
    const chunks = await stream([pieceOf({ text: 'a' }), endOf()], options);
    expect(chunks.map(({ choices }) => choices[0].text)).toEqual(['p', '']);
  });

  test('has its usage in the last chunk if that is wanted, and null before', async () => {
    const chunks = await stream([pieceOf({ text: 'a' }), endOf()], optionsOf({ hasUsageChunk: true }));
    expect(chunks.map(({ usage }) => usage?.total_tokens ?? usage)).toEqual([null, null, 15]);
    expect(chunks.at(-1).choices).toEqual([]);
  });
});
