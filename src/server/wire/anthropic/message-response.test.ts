import { describe, expect, test } from 'vitest';
import { collect, endOf, pieceOf, streamOf, USAGE } from '../../../../test/support/answer-chunks.ts';
import type { AnswerChunk } from '../../../runtime/requests/answer-chunks.ts';
import { describeFailure, refusal } from '../../errors.ts';
import { anthropicErrors } from './error-body.ts';
import { type MessageHead, toStop, writeEnvelope, writeMessage } from './message-response.ts';
import { writeMessageStream } from './message-stream.ts';
import { toMessageUsage } from './usage.ts';

const HEAD: MessageHead = { id: 'msg_1', model: 'm', hasThinking: true, hasCacheControl: false, extensions: {} };
const call = (more: object) => ({
  index: 0,
  id: 'call_1',
  name: 'f',
  isFirst: true,
  arguments: '',
  outcome: null,
  ...more,
});
const ANSWER: AnswerChunk[] = [
  pieceOf({ reasoning: 'hm' }),
  pieceOf({ text: 'a' }),
  pieceOf({ text: 'b' }),
  pieceOf({ toolCalls: [call({ arguments: '{"x"' })] }),
  pieceOf({ toolCalls: [call({ isFirst: false, arguments: ':1}' })] }),
  endOf({ finishReason: 'tool_calls' }),
];
const thinking = { type: 'thinking', thinking: 'hm', signature: 'ruvllm' };
const text = { type: 'text', text: 'ab', citations: null };
const use = { type: 'tool_use', id: 'toolu_1', name: 'f', input: { x: 1 }, caller: { type: 'direct' } };

test.each([
  ['length', null, { stop_reason: 'max_tokens', stop_sequence: null }],
  ['tool_calls', null, { stop_reason: 'tool_use', stop_sequence: null }],
  ['stop', null, { stop_reason: 'end_turn', stop_sequence: null }],
  ['stop', 'END', { stop_reason: 'stop_sequence', stop_sequence: 'END' }],
] as const)('an answer that ended by %s at %j', (finishReason, stopString, stop) => {
  expect(toStop(endOf({ finishReason, stopString }))).toEqual(stop);
});

test.each([
  // Input, written, read: the last token is computed by every request.
  [{ promptTokens: 10, cachedTokens: 4 }, false, [6, 0, 4]],
  [{ promptTokens: 10, cachedTokens: 4 }, true, [1, 5, 4]],
  [{ promptTokens: 10, cachedTokens: 9 }, true, [1, 0, 9]],
  [{ promptTokens: 10, cachedTokens: 10 }, true, [0, 0, 10]],
])('usage of %j, marked: %j', (tokens, isMarked, [input, written, read]) => {
  expect(toMessageUsage({ ...tokens, completionTokens: 3 }, isMarked)).toMatchObject({
    input_tokens: input,
    cache_creation_input_tokens: written,
    cache_read_input_tokens: read,
    cache_creation: { ephemeral_5m_input_tokens: written },
    output_tokens: 3,
  });
});

describe('a message', () => {
  test('has thoughts, text and calls', async () => {
    expect(await writeMessage({ ...HEAD, extensions: { memory: 1 } }, streamOf(ANSWER))).toMatchObject({
      id: 'msg_1',
      type: 'message',
      role: 'assistant',
      model: 'm',
      content: [thinking, text, use],
      stop_reason: 'tool_use',
      stop_sequence: null,
      memory: 1,
      usage: { input_tokens: 6, cache_creation_input_tokens: 0, cache_read_input_tokens: 4, output_tokens: 5 },
    });
  });

  test('has no thoughts unless they are wanted', async () => {
    expect(await writeMessage({ ...HEAD, hasThinking: false }, streamOf(ANSWER))).toMatchObject({
      content: [text, use],
    });
  });

  test('has no content if nothing was generated, and an empty input if it was cut off', async () => {
    expect(await writeMessage(HEAD, streamOf([endOf()]))).toMatchObject({ content: [] });
    const cut = [pieceOf({ toolCalls: [call({ arguments: '{"x":' })] }), endOf({ finishReason: 'length' })];
    expect(await writeMessage(HEAD, streamOf(cut))).toMatchObject({ content: [{ type: 'tool_use', input: {} }] });
  });

  test('says what was written to the cache if the prompt was marked', async () => {
    expect(await writeMessage({ ...HEAD, hasCacheControl: true }, streamOf(ANSWER))).toMatchObject({
      usage: { input_tokens: 1, cache_creation_input_tokens: 5 },
    });
  });

  test('counts its whole prompt as input before the answer', () => {
    expect(writeEnvelope({ ...HEAD, hasCacheControl: true }, 10)).toMatchObject({
      content: [],
      stop_reason: null,
      usage: { input_tokens: 10, cache_creation_input_tokens: 0, cache_read_input_tokens: 0, output_tokens: 0 },
    });
  });
});

describe('a streamed message', () => {
  const stream = async (head: MessageHead, answer: readonly AnswerChunk[]): Promise<any[]> => {
    const messages = await collect(writeMessageStream(head, streamOf(answer), Promise.resolve(USAGE.promptTokens)));
    for (const { event, data } of messages) expect(event).toBe((JSON.parse(data) as { type: string }).type);
    return messages.map(({ data }) => JSON.parse(data) as unknown);
  };

  test('opens, fills and closes one block after the other', async () => {
    const [start, ...events] = await stream(HEAD, ANSWER);
    expect(start).toEqual({ type: 'message_start', message: writeEnvelope(HEAD, 10) });
    const block = (index: number, content_block: object) => ({ type: 'content_block_start', index, content_block });
    const delta = (index: number, delta: object) => ({ type: 'content_block_delta', index, delta });
    const stop = (index: number) => ({ type: 'content_block_stop', index });
    expect(events).toEqual([
      block(0, { type: 'thinking', thinking: '', signature: '' }),
      { type: 'ping' },
      delta(0, { type: 'thinking_delta', thinking: 'hm' }),
      delta(0, { type: 'signature_delta', signature: 'ruvllm' }),
      stop(0),
      block(1, { type: 'text', text: '', citations: null }),
      delta(1, { type: 'text_delta', text: 'a' }),
      delta(1, { type: 'text_delta', text: 'b' }),
      stop(1),
      block(2, { ...use, input: {} }),
      delta(2, { type: 'input_json_delta', partial_json: '{"x"' }),
      delta(2, { type: 'input_json_delta', partial_json: ':1}' }),
      stop(2),
      {
        type: 'message_delta',
        delta: { stop_reason: 'tool_use', stop_sequence: null, stop_details: null, container: null },
        usage: {
          input_tokens: 6,
          cache_creation_input_tokens: 0,
          cache_read_input_tokens: 4,
          output_tokens: 5,
          output_tokens_details: null,
          server_tool_use: null,
        },
      },
      { type: 'message_stop' },
    ]);
  });

  test('of nothing has no block', async () => {
    const events = await stream(HEAD, [endOf()]);
    expect(events.map(({ type }) => type)).toEqual(['message_start', 'message_delta', 'message_stop']);
  });
});

test.each([
  [400, 400, 'invalid_request_error'],
  [401, 401, 'authentication_error'],
  [403, 403, 'permission_error'],
  [404, 404, 'not_found_error'],
  [409, 409, 'invalid_request_error'],
  [413, 413, 'request_too_large'],
  [415, 400, 'invalid_request_error'],
  [422, 400, 'invalid_request_error'],
  [429, 429, 'rate_limit_error'],
  [499, 499, 'invalid_request_error'],
  [500, 500, 'api_error'],
  [502, 502, 'api_error'],
  [503, 529, 'overloaded_error'],
  [504, 504, 'timeout_error'],
])('a failure of the status %i is a %i of the type %s', (status, sent, type) => {
  const failure = describeFailure(refusal(status, 'x', 'no'));
  expect(anthropicErrors.status!(failure)).toBe(sent);
  expect(anthropicErrors.body(failure, 'req_1')).toEqual({
    type: 'error',
    error: { type, message: 'no' },
    request_id: 'req_1',
  });
});
