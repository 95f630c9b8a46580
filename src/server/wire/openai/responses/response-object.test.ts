import { describe, expect, test } from 'vitest';
import { collect, endOf, streamOf } from '../../../../../test/support/answer-chunks.ts';
import { createByteTokenizer } from '../../../../../test/support/byte-tokenizer.ts';
import type { ToolOutput } from '../../../../runtime/tools/runnable-tool.ts';
import { describeFailure, refusal } from '../../../errors.ts';
import { isMcpPart, type McpPart, writeMcpItem } from './mcp-items.ts';
import {
  collectResponse,
  type ResponseHead,
  type ResponsePart,
  type ResponsePartEvent,
  toTurn,
  writeEnded,
  writeItem,
} from './response-object.ts';
import { createResponseStream } from './stream.ts';

const tokenizer = createByteTokenizer();
const HEAD: ResponseHead = { id: 'resp_1', created: 5, model: 'm', echo: { store: true }, tokenizer };
const END = tokenizer.eosId!;
const sampled = (tokenId: number) => ({ tokenId, logprob: -1, top: [{ tokenId: END, logprob: -2 }] });
const text = (value: string, logprobs: ReturnType<typeof sampled>[] | null = null): ResponsePart => ({
  type: 'text',
  text: value,
  logprobs,
});
const thought: ResponsePart = { type: 'reasoning', text: 'hm' };
const call: ResponsePart = { type: 'tool_call', id: 'call_1', name: 'f', arguments: '{}' };
const wireA = {
  token: 'a',
  logprob: -1,
  bytes: [97],
  top_logprobs: [{ token: '<|im_end|>', logprob: -2, bytes: [] }],
};
const item = (id: string, more: object) => ({ id, status: 'completed', ...more });
const textItem = (value: string, logprobs: object[] = [], more: object = {}) =>
  item('msg_1_0', {
    type: 'message',
    role: 'assistant',
    content: [{ type: 'output_text', text: value, annotations: [], logprobs }],
    ...more,
  });

const mcpCall = (more: Partial<Extract<McpPart, { type: 'mcp_call' }>> = {}) =>
  ({ type: 'mcp_call', label: 'wiki', name: 'f', arguments: '{}', output: null, approvalId: null, ...more }) as const;
const output = (outcome: ToolOutput['outcome']): ToolOutput => ({ text: 'r', outcome, numBytes: 1 });
const listed: McpPart = {
  type: 'mcp_list_tools',
  label: 'wiki',
  tools: [
    { name: 'f', description: '', inputSchema: {}, isReadOnly: true },
    { name: 'g', description: 'd', inputSchema: {}, isReadOnly: false },
  ] as never,
};

describe('an item', () => {
  test.each<[ResponsePart, object]>([
    [text('a', [sampled(97)]), textItem('a', [wireA])],
    [text('a'), textItem('a')],
    [thought, item('rs_1_0', { type: 'reasoning', summary: [], content: [{ type: 'reasoning_text', text: 'hm' }] })],
    [call, item('fc_1_0', { type: 'function_call', call_id: 'call_1', name: 'f', arguments: '{}' })],
  ])('of %j', (part, written) => {
    expect(writeItem(HEAD, part, 0, 'completed')).toEqual(written);
    expect(writeItem(HEAD, part, 0, 'incomplete')).toEqual({ ...written, status: 'incomplete' });
  });

  test('is empty while it is in progress', () => {
    expect([text('a'), thought, call].map((part) => writeItem(HEAD, part, 2, 'in_progress'))).toMatchObject([
      { id: 'msg_1_2', status: 'in_progress', content: [] },
      { id: 'rs_1_2', content: [] },
      { id: 'fc_1_2', arguments: '' },
    ]);
  });
});

describe('an item of an MCP server', () => {
  const failed = { type: 'mcp_tool_execution_error', content: [{ type: 'text', text: 'r' }] };

  test.each([
    [null, false, { status: 'in_progress', output: null, error: null }],
    [null, true, { status: 'incomplete', output: null, error: null }],
    [output('done'), true, { status: 'completed', output: 'r', error: null }],
    [output('cut'), true, { status: 'completed', output: 'r', error: null }],
    [output('failed'), true, { status: 'failed', output: null, error: failed }],
    [output('refused'), true, { status: 'failed', output: null, error: failed }],
  ])('of a call with the output %j, ended: %j', (result, isEnded, written) => {
    expect(writeMcpItem(HEAD, mcpCall({ output: result, approvalId: 'r1' }), 0, isEnded)).toEqual({
      id: 'mcp_1_0',
      type: 'mcp_call',
      server_label: 'wiki',
      name: 'f',
      arguments: '{}',
      approval_request_id: 'r1',
      ...written,
    });
  });

  test('is a list of tools, or a request for approval', () => {
    expect(writeItem(HEAD, listed, 1, 'completed')).toEqual({
      id: 'mcpl_1_1',
      type: 'mcp_list_tools',
      server_label: 'wiki',
      tools: [
        { name: 'f', description: null, input_schema: {}, annotations: { readOnlyHint: true } },
        { name: 'g', description: 'd', input_schema: {}, annotations: { readOnlyHint: false } },
      ],
      error: null,
    });
    const request: McpPart = { type: 'mcp_approval_request', label: 'wiki', name: 'f', arguments: '{}' };
    expect(writeItem(HEAD, request, 1, 'completed')).toEqual({
      id: 'mcpr_1_1',
      type: 'mcp_approval_request',
      server_label: 'wiki',
      name: 'f',
      arguments: '{}',
    });
    expect([isMcpPart(request), isMcpPart(call)]).toEqual([true, false]);
  });

  test('has ended unless its status says that it has not', () => {
    expect(writeItem(HEAD, mcpCall(), 0, 'in_progress')).toMatchObject({ status: 'in_progress' });
    expect(writeItem(HEAD, mcpCall(), 0, 'completed')).toMatchObject({ status: 'incomplete' });
  });
});

describe('a response that ended', () => {
  test('has its items and its usage', () => {
    expect(writeEnded(HEAD, [text('a'), text('b')], endOf(), 9)).toEqual({
      id: 'resp_1',
      object: 'response',
      created_at: 5,
      completed_at: 9,
      status: 'completed',
      error: null,
      incomplete_details: null,
      store: true,
      model: 'm',
      output: [textItem('a'), textItem('b', [], { id: 'msg_1_1' })],
      usage: {
        input_tokens: 10,
        input_tokens_details: { cached_tokens: 4, cache_write_tokens: 0 },
        output_tokens: 5,
        output_tokens_details: { reasoning_tokens: 2 },
        total_tokens: 15,
      },
    });
  });

  test('is incomplete if it was cut off, and so is its last item', () => {
    expect(writeEnded(HEAD, [text('a'), text('b')], endOf({ finishReason: 'length' }), 9)).toMatchObject({
      completed_at: null,
      status: 'incomplete',
      incomplete_details: { reason: 'max_output_tokens' },
      output: [{ status: 'completed' }, { status: 'incomplete' }],
    });
  });
});

test('an answer is a turn of the conversation', () => {
  expect(toTurn([text('a'), text('b')])).toEqual({ role: 'assistant', content: 'ab' });
  expect(toTurn([thought, text('a'), call])).toEqual({
    role: 'assistant',
    content: 'a',
    reasoning: 'hm',
    toolCalls: [{ id: 'call_1', name: 'f', arguments: '{}' }],
  });
});

const finished = (...parts: ResponsePart[]): ResponsePartEvent => ({ type: 'finished', parts, finished: endOf() });

test('a response is read to its end', async () => {
  const events = [{ type: 'open', index: 0, part: text('') } as const, finished(text('a'))];
  expect(await collectResponse(streamOf(events))).toEqual({ parts: [text('a')], finished: endOf() });
});

describe('a streamed response', () => {
  const stream = async (...events: ResponsePartEvent[]): Promise<any[]> => {
    const { messages } = createResponseStream(HEAD, streamOf(events), async () => ({ status: 'completed', id: 'x' }));
    const all = (await collect(messages)).map(({ event, data }) => ({ event, ...(JSON.parse(data) as any) }));
    expect(all.map(({ sequence_number }) => sequence_number)).toEqual(all.map((_, index) => index));
    for (const { event, type } of all) expect(event).toBe(type);
    return all.map(({ event: _event, sequence_number: _number, type, ...fields }) => [
      type.replace('response.', ''),
      fields,
    ]);
  };
  /** The events of one part, without those of the response. */
  const streamPart = async (...events: ResponsePartEvent[]) => (await stream(...events)).slice(2);
  const delta = (part: ResponsePart, value: string, logprobs: ReturnType<typeof sampled>[] | null = null) =>
    ({ type: 'delta', index: 0, part, text: value, logprobs }) as ResponsePartEvent;
  const open = (part: ResponsePart): ResponsePartEvent => ({ type: 'open', index: 0, part });
  const close = (part: ResponsePart, isCut = false): ResponsePartEvent => ({ type: 'close', index: 0, part, isCut });

  test('starts and ends', async () => {
    const started = { status: 'in_progress', output: [], completed_at: null };
    expect(await stream(finished())).toMatchObject([
      ['created', { response: started }],
      ['in_progress', { response: started }],
      ['completed', { response: { status: 'completed', id: 'x' } }],
    ]);
  });

  test('has a text with its log-probabilities', async () => {
    const part = text('a', [sampled(97)]);
    const at = { item_id: 'msg_1_0', output_index: 0, content_index: 0 };
    const empty = { type: 'output_text', text: '', annotations: [], logprobs: [] };
    const whole = { ...empty, text: 'a', logprobs: [wireA] };
    expect(await streamPart(open(part), delta(part, 'a', [sampled(97)]), close(part))).toEqual([
      ['output_item.added', { output_index: 0, item: textItem('', [], { status: 'in_progress', content: [] }) }],
      ['content_part.added', { ...at, part: empty }],
      ['output_text.delta', { ...at, delta: 'a', logprobs: [wireA] }],
      ['output_text.done', { ...at, text: 'a', logprobs: [wireA] }],
      ['content_part.done', { ...at, part: whole }],
      ['output_item.done', { output_index: 0, item: textItem('a', [wireA]) }],
    ]);
  });

  test('has a thought', async () => {
    const at = { item_id: 'rs_1_0', output_index: 0, content_index: 0 };
    expect(await streamPart(open(thought), delta(thought, 'hm'), close(thought, true))).toMatchObject([
      ['output_item.added', { item: { type: 'reasoning', status: 'in_progress' } }],
      ['content_part.added', { ...at, part: { type: 'reasoning_text', text: '' } }],
      ['reasoning_text.delta', { ...at, delta: 'hm' }],
      ['reasoning_text.done', { ...at, text: 'hm' }],
      ['content_part.done', { ...at, part: { type: 'reasoning_text', text: 'hm' } }],
      ['output_item.done', { item: { type: 'reasoning', status: 'incomplete' } }],
    ]);
  });

  test('has a call', async () => {
    const at = { item_id: 'fc_1_0', output_index: 0 };
    expect(await streamPart(open(call), delta(call, '{}'), close(call))).toEqual([
      ['output_item.added', { output_index: 0, item: writeItem(HEAD, call, 0, 'in_progress') }],
      ['function_call_arguments.delta', { ...at, delta: '{}' }],
      ['function_call_arguments.done', { ...at, name: 'f', arguments: '{}' }],
      ['output_item.done', { output_index: 0, item: writeItem(HEAD, call, 0, 'completed') }],
    ]);
  });

  test.each([
    [output('done'), ['mcp_call.completed']],
    [output('failed'), ['mcp_call.failed']],
    [output('refused'), ['mcp_call.failed']],
    [null, []],
  ])('has a call of an MCP server with the output %j', async (result, ended) => {
    const part = mcpCall({ output: result });
    const at = { item_id: 'mcp_1_0', output_index: 0 };
    const events = await streamPart(open(part), delta(part, '{}'), { type: 'arguments', index: 0, part }, close(part));
    expect(events).toMatchObject([
      ['output_item.added', { output_index: 0 }],
      ['mcp_call_arguments.delta', { ...at, delta: '{}' }],
      ['mcp_call_arguments.done', { ...at, arguments: '{}' }],
      ['mcp_call.in_progress', at],
      ...ended.map((type) => [type, at]),
      ['output_item.done', { output_index: 0 }],
    ]);
  });

  test('has a list of the tools of an MCP server', async () => {
    expect((await streamPart(open(listed), close(listed))).map(([type]) => type)).toEqual([
      'output_item.added',
      'mcp_list_tools.in_progress',
      'mcp_list_tools.completed',
      'output_item.done',
    ]);
  });

  test.each([
    [400, 'invalid_prompt'],
    [429, 'rate_limit_exceeded'],
    [499, 'invalid_prompt'],
    [500, 'server_error'],
    [503, 'server_error'],
  ])('that failed with the status %i has the code %s', (status, code) => {
    const { writeFailed } = createResponseStream(HEAD, streamOf([]), async () => ({ status: 'completed' }));
    expect(writeFailed(describeFailure(refusal(status, 'x', 'no')))).toMatchObject({
      type: 'response.failed',
      sequence_number: 0,
      response: { status: 'failed', error: { code, message: 'no' } },
    });
  });
});
