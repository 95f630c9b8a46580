import { describe, expect, test } from 'vitest';
import { collect, endOf, pieceOf, streamOf, USAGE } from '../../../../test/support/answer-chunks.ts';
import { createByteTokenizer } from '../../../../test/support/byte-tokenizer.ts';
import type { AnswerChunk } from '../../../runtime/requests/answer-chunks.ts';
import { type NativeAnswer, writeNativeCompletion, writeNativeStream } from './completion-response.ts';
import { toWireTimings } from './timings.ts';

const tokenizer = createByteTokenizer();
const END = tokenizer.eosId!;
const answerOf = (more: object = {}, prompts: unknown[] = ['p'], options: object = {}): NativeAnswer =>
  ({
    model: 'm',
    tokenizer,
    request: { generation: { prompts, options }, isStream: false, isPromptOnly: false, hasTokens: false, ...more },
  }) as unknown as NativeAnswer;
const sampled = (tokenId: number, logprob: number | null = -1) => ({
  tokenId,
  logprob,
  top: [{ tokenId: END, logprob: -Infinity }],
});
const written = (token: string, logprob = -1) => ({
  id: token.charCodeAt(0),
  token,
  bytes: [token.charCodeAt(0)],
  logprob,
  top_logprobs: [{ id: END, token: '<|im_end|>', bytes: [], logprob: -9999 }],
});
const TEXT: AnswerChunk[] = [
  pieceOf({ text: 'a', tokenIds: [97], textLogprobs: [sampled(97)] }),
  pieceOf({ tokenIds: [98], textLogprobs: [] }),
  pieceOf({ text: 'bc', tokenIds: [99], textLogprobs: [sampled(98), sampled(99, null)] }),
  endOf(),
];
const TIMINGS = {
  cache_n: 4,
  prompt_n: 6,
  prompt_ms: 30,
  prompt_per_token_ms: 5,
  prompt_per_second: 200,
  predicted_n: 5,
  predicted_ms: 20,
  predicted_per_token_ms: 4,
  predicted_per_second: 250,
};

test('timings are per computed token, if there is one', () => {
  expect(toWireTimings(endOf())).toEqual(TIMINGS);
  const usage = { ...USAGE, cachedTokens: 10, completionTokens: 0 };
  expect(toWireTimings(endOf({ usage }))).toMatchObject({
    prompt_n: 0,
    prompt_per_token_ms: null,
    predicted_per_token_ms: null,
  });
});

describe('a completion', () => {
  test('has its text, its figures and the settings that applied', async () => {
    expect(await writeNativeCompletion(answerOf(), streamOf(TEXT))).toEqual({
      index: 0,
      content: 'abc',
      tokens: [],
      id_slot: -1,
      stop: true,
      model: 'm',
      tokens_predicted: 5,
      tokens_evaluated: 10,
      tokens_cached: 4,
      generation_settings: {
        n_predict: -1,
        seed: 7,
        typical_p: 1,
        repeat_penalty: 1,
        repeat_last_n: 64,
        presence_penalty: 0,
        frequency_penalty: 0,
        stop: [],
        ignore_eos: false,
      },
      prompt: 'p',
      truncated: false,
      stop_type: 'eos',
      stopping_word: '',
      completion_probabilities: [written('a'), written('b'), written('c', -9999)],
      timings: TIMINGS,
    });
  });

  test('has the settings of its request', async () => {
    const options = {
      maxTokens: 3,
      temperature: 0.1,
      topK: 2,
      topP: 0.3,
      minP: 0.4,
      typicalP: 0.5,
      repetitionPenalty: 1.6,
      penaltyWindow: 7,
      presencePenalty: 0.8,
      frequencyPenalty: 0.9,
      stop: ['x'],
      ignoreEos: true,
    };
    expect(await writeNativeCompletion(answerOf({}, [[112, 113]], options), streamOf(TEXT))).toMatchObject({
      prompt: 'pq',
      generation_settings: {
        n_predict: 3,
        temperature: 0.1,
        top_k: 2,
        top_p: 0.3,
        min_p: 0.4,
        typical_p: 0.5,
        repeat_penalty: 1.6,
        repeat_last_n: 7,
        presence_penalty: 0.8,
        frequency_penalty: 0.9,
        stop: ['x'],
        ignore_eos: true,
      },
    });
  });

  test.each([
    [{ finishReason: 'length' }, { stop_type: 'limit', stopping_word: '' }],
    [{ stopString: 'x' }, { stop_type: 'word', stopping_word: 'x' }],
    [{}, { stop_type: 'eos', stopping_word: '' }],
  ] as const)('that ended by %j', async (end, stop) => {
    expect(await writeNativeCompletion(answerOf(), streamOf([endOf(end)]))).toMatchObject(stop);
  });

  test('has its tokens only if they are wanted', async () => {
    expect(await writeNativeCompletion(answerOf({ hasTokens: true }), streamOf(TEXT))).toMatchObject({
      tokens: [97, 98, 99],
    });
  });

  test('has no probabilities if they are not wanted', async () => {
    const events = [pieceOf({ text: 'a' }), pieceOf({ textLogprobs: [] }), endOf()];
    expect(await writeNativeCompletion(answerOf(), streamOf(events))).not.toHaveProperty('completion_probabilities');
  });

  test('has nothing of the answer if only its prompt was to be computed', async () => {
    const answer = await writeNativeCompletion(answerOf({ isPromptOnly: true, hasTokens: true }), streamOf(TEXT));
    expect(answer).toMatchObject({ content: '', tokens: [], tokens_predicted: 0, tokens_evaluated: 10 });
    expect(answer).not.toHaveProperty('completion_probabilities');
  });

  test('is a list for several prompts', async () => {
    const events = [
      pieceOf({ choice: 1, text: 'b' }),
      pieceOf({ choice: 0, text: 'a' }),
      endOf({ choice: 1, finishReason: 'length' }),
      endOf(),
    ];
    expect(await writeNativeCompletion(answerOf({}, ['p', 'q']), streamOf(events))).toMatchObject([
      { index: 0, content: 'a', prompt: 'p', stop_type: 'eos' },
      { index: 1, content: 'b', prompt: 'q', stop_type: 'limit' },
    ]);
  });
});

describe('a streamed completion', () => {
  const stream = async (answer: NativeAnswer, events: readonly AnswerChunk[]) =>
    (await collect(writeNativeStream(answer, streamOf(events)))).map(({ data }) => JSON.parse(data) as object);

  test('has each token with the text that it completes', async () => {
    const [a, b, end, ...more] = await stream(answerOf(), TEXT);
    const piece = { index: 0, stop: false, id_slot: -1 };
    expect([a, b]).toEqual([
      { ...piece, content: 'a', tokens: [97], tokens_predicted: 1, completion_probabilities: [written('a')] },
      {
        ...piece,
        content: 'bc',
        tokens: [98, 99],
        tokens_predicted: 3,
        completion_probabilities: [written('b'), written('c', -9999)],
      },
    ]);
    expect(end).toMatchObject({ content: '', tokens: [], stop: true, stop_type: 'eos', tokens_predicted: 5 });
    expect(end).not.toHaveProperty('completion_probabilities');
    expect(more).toEqual([]);
  });

  test('has only its end if only the prompt was to be computed', async () => {
    expect(await stream(answerOf({ isPromptOnly: true }), TEXT)).toMatchObject([{ stop: true, tokens_predicted: 0 }]);
  });
});
