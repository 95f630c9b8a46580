// Tools of MCP servers in `POST /v1/responses`, with a scripted model and servers in this process.
import { describe, expect, test } from 'vitest';
import {
  configOf,
  createFakePool,
  createFakeTransport,
  type FakeTool,
  textResult,
} from '../../../test/support/fake-mcp.ts';
import { hasOpenapi, violationsOf } from '../../../test/support/openapi-schemas.ts';
import { createSpokenModel } from '../../../test/support/spoken-model.ts';
import { readSseEvents } from '../../../test/support/sse-events.ts';
import { openTestMemory } from '../../../test/support/test-memory.ts';
import { createMemoryKeys, createTestServer, entryOf } from '../../../test/support/test-server.ts';
import { createKeyStore } from '../keys/key-store.ts';
import type { McpServerConfig } from '../../runtime/lower-layers.ts';
import { operationOf } from '../../runtime/memory-operations.ts';
import type { ServerOptions } from '../app.ts';

const call = (name: string, args: object): string =>
  `<tool_call>\n${JSON.stringify({ name, arguments: args })}\n</tool_call>`;
const WARM = 'It is 20 degrees.';
const never = { type: 'mcp', server_label: 'weather', require_approval: 'never' };
const always = { type: 'mcp', server_label: 'weather' };

function setUp(
  answers: readonly string[],
  options: Partial<ServerOptions> & { configs?: readonly McpServerConfig[] } = {},
) {
  const { configs, ...more } = options;
  const calls: object[] = [];
  const tools: Record<string, FakeTool> = {
    degrees: {
      run(args) {
        calls.push(args);
        return textResult('20');
      },
    },
    change: {
      isReadOnly: false,
      run(args) {
        calls.push(args);
        return textResult('changed');
      },
    },
    broken: { run: () => ({ ...textResult('no signal'), isError: true }) },
  };
  const pool = createFakePool({ weather: tools }, configs ?? [configOf('weather')]);
  const { model, requests } = createSpokenModel(answers);
  const server = createTestServer([entryOf('m', async () => model)], { mcp: { pool, connectPublic: null }, ...more });
  const send = (body: object, token?: string): Promise<Response> =>
    server.fetch(
      new Request('http://localhost/v1/responses', {
        method: 'POST',
        body: JSON.stringify({ model: 'm', input: 'How warm is it?', max_output_tokens: 500, ...body }),
        headers: {
          'content-type': 'application/json',
          ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
        },
      }),
    );
  const ask = async (body: object): Promise<any> => {
    const response = await send(body);
    const answer = (await response.json()) as any;
    expect(response.status, JSON.stringify(answer)).toBe(200);
    if (hasOpenapi) expect(violationsOf('Response', answer)).toEqual([]);
    return answer;
  };
  const fail = async (body: object): Promise<any> => {
    const response = await send(body);
    return { status: response.status, ...((await response.json()) as any).error };
  };
  return { server, ask, fail, send, requests, calls };
}

describe('[MT1] a response with MCP tools', () => {
  test('lists the tools, calls the one that the model names and answers', async () => {
    const { ask, requests, calls, server } = setUp([call('degrees', { city: 'Rome' }), WARM]);
    const answer = await ask({ tools: [never], tool_choice: 'required' });
    expect(answer.output).toMatchObject([
      { type: 'mcp_list_tools', server_label: 'weather', error: null },
      {
        type: 'mcp_call',
        server_label: 'weather',
        name: 'degrees',
        arguments: '{"city":"Rome"}',
        output: '20',
        error: null,
        status: 'completed',
        approval_request_id: null,
      },
      { type: 'message', content: [{ text: WARM }] },
    ]);
    expect(answer.output[0].tools.map((tool: { name: string }) => tool.name)).toEqual(['degrees', 'change', 'broken']);
    expect(calls).toEqual([{ city: 'Rome' }]);
    expect(requests[1]!.prompt).toContain('<|im_start|>tool\n20<|im_end|>');
    expect(answer.usage.input_tokens).toBe(requests[0]!.promptIds.length + requests[1]!.promptIds.length);
    expect(JSON.stringify(requests[0]!.grammar)).not.toBe(JSON.stringify(requests[1]!.grammar));
    // It can be continued, and its input is only the question.
    const next = await ask({ previous_response_id: answer.id, input: 'Thanks.', tools: [never] });
    expect(next.output.at(-1).content[0].text).toBe(WARM);
    expect(requests[2]!.prompt).toContain('<|im_start|>tool\n20<|im_end|>');
    const items = await server.fetch(new Request(`http://localhost/v1/responses/${answer.id}/input_items`));
    expect(((await items.json()) as any).data).toHaveLength(1);
  });

  test('streams the same, with events of the calls', async () => {
    const { send } = setUp([`Wait.\n${call('degrees', { city: 'Rome' })}`, WARM]);
    const events = (await readSseEvents(await send({ tools: [never], stream: true }))).map(({ data }) => data as any);
    if (hasOpenapi) for (const event of events) expect(violationsOf('ResponseStreamEvent', event)).toEqual([]);
    expect(events.map(({ sequence_number: number }) => number)).toEqual(events.map((_, index) => index));
    const types = events.map(({ type }) => type as string).filter((type, index, all) => type !== all[index - 1]);
    expect(types).toEqual([
      'response.created',
      'response.in_progress',
      'response.output_item.added',
      'response.mcp_list_tools.in_progress',
      'response.mcp_list_tools.completed',
      'response.output_item.done',
      'response.output_item.added',
      'response.content_part.added',
      'response.output_text.delta',
      'response.output_text.done',
      'response.content_part.done',
      'response.output_item.done',
      'response.output_item.added',
      'response.mcp_call_arguments.delta',
      'response.mcp_call_arguments.done',
      'response.mcp_call.in_progress',
      'response.mcp_call.completed',
      'response.output_item.done',
      'response.output_item.added',
      'response.content_part.added',
      'response.output_text.delta',
      'response.output_text.done',
      'response.content_part.done',
      'response.output_item.done',
      'response.completed',
    ]);
    const { response } = events.at(-1);
    const done = events.filter(({ type }) => type === 'response.output_item.done');
    expect(done.map(({ item }) => item)).toEqual(response.output);
    expect(done.map(({ output_index: index }) => index)).toEqual([0, 1, 2, 3]);
  });

  test('tells the model of a failed call', async () => {
    const { ask, requests } = setUp([call('broken', {}), 'Sorry.']);
    const answer = await ask({ tools: [never] });
    expect(answer.output[1]).toMatchObject({
      status: 'failed',
      output: null,
      error: { type: 'mcp_tool_execution_error', content: [{ type: 'text', text: 'no signal' }] },
    });
    expect(requests[1]!.prompt).toContain('<|im_start|>tool\nno signal<|im_end|>');
  });

  test('refuses a tool that the operator wants to be asked about, and says so', async () => {
    const { ask, calls } = setUp([call('change', {}), 'I may not.']);
    const answer = await ask({ tools: [never] });
    expect(answer.output[1]).toMatchObject({ type: 'mcp_call', name: 'change', status: 'failed' });
    expect(answer.output[1].error.content[0].text).toMatch(
      /requires the operator's consent .* cannot be given over HTTP/,
    );
    expect(calls).toEqual([]);
  });

  test('does not show a tool that the operator denies', async () => {
    const consent = { server: null, tools: new Map([['degrees', 'deny' as const]]) };
    const { ask, requests, fail } = setUp(['Hi.'], { configs: [configOf('weather', { consent })] });
    const answer = await ask({ tools: [never] });
    expect(answer.output[0].tools.map((tool: { name: string }) => tool.name)).toEqual(['change', 'broken']);
    expect(requests[0]!.prompt).not.toContain('degrees');
    expect(await fail({ tools: [{ ...never, allowed_tools: ['degrees'] }] })).toMatchObject({ status: 400, code: 'mcp_tool_not_found' }); // prettier-ignore
  });

  test('offers only allowed tools', async () => {
    const { ask, requests } = setUp(['Hi.']);
    for (const allowed of [['degrees'], { tool_names: ['degrees'] }]) {
      const answer = await ask({ tools: [{ ...never, allowed_tools: allowed }] });
      expect(answer.output[0].tools).toHaveLength(1);
    }
    expect((await ask({ tools: [{ ...never, allowed_tools: { read_only: false } }] })).output[0].tools).toMatchObject([{ name: 'change' }]); // prettier-ignore
    expect(requests[0]!.prompt).not.toContain('broken');
  });

  test('leaves calls of the client’s own functions to the client', async () => {
    const own = { type: 'function', name: 'degrees', parameters: { type: 'object' }, strict: false };
    const { ask, calls } = setUp([`${call('weather__degrees', { a: 1 })}\n${call('degrees', { b: 2 })}`, WARM]);
    const answer = await ask({ tools: [never, own] });
    expect(answer.output.slice(1)).toMatchObject([
      { type: 'mcp_call', name: 'degrees', arguments: '{"a":1}', output: '20' },
      { type: 'function_call', name: 'degrees', arguments: '{"b":2}' },
    ]);
    expect(calls).toEqual([{ a: 1 }]);
    const result = { type: 'function_call_output', call_id: answer.output[2].call_id, output: '30' };
    const next = await ask({ previous_response_id: answer.id, input: [result], tools: [never, own] });
    expect(next.output.at(-1).content[0].text).toBe(WARM);
  });

  test('a tool of a server can be forced by name', async () => {
    const { ask, requests } = setUp([call('degrees', {}), WARM]);
    await ask({ tools: [never], tool_choice: { type: 'mcp', server_label: 'weather', name: 'degrees' } });
    expect(JSON.stringify(requests[0]!.grammar)).toContain('degrees');
    expect(JSON.stringify(requests[0]!.grammar)).not.toContain('broken');
  });

  test('ends a model that goes in circles with a clear error', async () => {
    const { fail, send } = setUp([call('degrees', {})]);
    expect(await fail({ tools: [never] })).toMatchObject({
      status: 422,
      message: 'the model calls degrees with the same arguments for the 4th time; the limit maxRepeats is 3',
    });
    const events = await readSseEvents(await send({ tools: [never], stream: true }));
    expect(events.at(-1)!.data).toMatchObject({ type: 'response.failed', response: { error: { message: expect.stringContaining('maxRepeats') as string } } }); // prettier-ignore
  });

  test('does not make a call that max_output_tokens cut off', async () => {
    const { ask, calls } = setUp([call('degrees', { city: 'a long name' })]);
    const answer = await ask({ tools: [never], max_output_tokens: 40 });
    expect(answer).toMatchObject({ status: 'incomplete', output: [{}, { type: 'mcp_call', status: 'incomplete' }] });
    expect(calls).toEqual([]);
  });
});

describe('[MT2] an approval', () => {
  test.each([
    ['given', true, '20'],
    ['denied', false, null],
  ])('is requested by default and %s with the next request', async (_name, approve, output) => {
    const { ask, calls, requests } = setUp([call('degrees', { city: 'Rome' }), WARM]);
    const first = await ask({ tools: [always] });
    expect(first.output.slice(1)).toMatchObject([
      { type: 'mcp_approval_request', server_label: 'weather', name: 'degrees', arguments: '{"city":"Rome"}' },
    ]);
    expect(calls).toEqual([]);
    const { id } = first.output[1];
    const response = { type: 'mcp_approval_response', approval_request_id: id, approve };
    const next = await ask({ previous_response_id: first.id, input: [response], tools: [always] });
    expect(next.output[1]).toMatchObject({ type: 'mcp_call', approval_request_id: id, output, name: 'degrees' });
    expect(next.output[2].content[0].text).toBe(WARM);
    expect(calls).toHaveLength(approve ? 1 : 0);
    expect(requests[1]!.prompt).toContain(
      approve ? '<|im_start|>tool\n20' : '<|im_start|>tool\nError: the user did not approve',
    );
  });

  test('works without stored responses, and in a conversation', async () => {
    const { ask, calls, server } = setUp([call('degrees', {}), WARM, call('degrees', {}), WARM]);
    const question = { role: 'user', content: 'How warm is it?' };
    const first = await ask({ tools: [always], store: false, input: [question] });
    const about = { type: 'mcp_approval_response', approval_request_id: first.output[1].id, approve: true };
    const next = await ask({ tools: [always], store: false, input: [question, ...first.output, about] });
    expect(next.output.at(-1).content[0].text).toBe(WARM);
    expect(calls).toHaveLength(1);
    const made = await server.fetch(
      new Request('http://localhost/v1/conversations', {
        method: 'POST',
        body: '{}',
        headers: { 'content-type': 'application/json' },
      }),
    );
    const conversation = ((await made.json()) as { id: string }).id;
    const one = await ask({ tools: [always], conversation });
    const answer = { type: 'mcp_approval_response', approval_request_id: one.output[1].id, approve: true };
    await ask({ tools: [always], conversation, input: [answer] });
    expect(calls).toHaveLength(2);
    const last = await ask({ tools: [always], conversation, input: 'And now?' });
    expect(last.output.at(-1).content[0].text).toBe(WARM);
  });

  test('runs the arguments of the request, once, and no call that was never requested', async () => {
    const { ask, calls } = setUp([call('degrees', { city: 'Rome' }), WARM]);
    const first = await ask({ tools: [always] });
    const { id } = first.output[1];
    const response = { type: 'mcp_approval_response', approval_request_id: id, approve: true };
    const stray = { type: 'mcp_approval_response', approval_request_id: 'mcpr_x', approve: true };
    const next = await ask({ previous_response_id: first.id, input: [response, response, stray], tools: [always] });
    expect(calls).toEqual([{ city: 'Rome' }]);
    const again = await ask({
      previous_response_id: next.id,
      input: [first.output[1], response, { role: 'user', content: 'x' }],
      tools: [always],
    });
    expect(calls).toEqual([{ city: 'Rome' }]);
    expect(again.output.at(-1).content[0].text).toBe(WARM);
  });

  test('can be left out for some tools', async () => {
    const require = (require_approval: object) => ({ tools: [{ ...always, require_approval }] });
    const { ask, calls } = setUp([call('degrees', { n: 1 }), WARM, call('degrees', { n: 2 })]);
    await ask(require({ never: { tool_names: ['degrees'] } }));
    expect(calls).toHaveLength(1);
    expect((await ask(require({ always: { tool_names: ['degrees'] } }))).output[1].type).toBe('mcp_approval_request');
  });
});

describe('[MT3] servers that a request names', () => {
  test('by URL are refused unless the operator allows it', async () => {
    const { fail } = setUp(['x']);
    const tools = [{ ...never, server_url: 'https://mcp.example/mcp' }];
    expect(await fail({ tools })).toMatchObject({ status: 403, code: 'mcp_server_url_not_allowed' });
  });

  test('by URL get the caller’s headers, which no response repeats', async () => {
    const seen: McpServerConfig[] = [];
    const connectPublic = (config: McpServerConfig) => {
      seen.push(config);
      return createFakeTransport({ degrees: { isReadOnly: false, run: () => textResult('20') } });
    };
    const { ask, fail } = setUp([call('degrees', {}), WARM], { mcp: { pool: createFakePool({}), connectPublic } });
    const tool = { ...never, server_url: 'https://mcp.example/mcp', headers: { 'x-a': 'b' }, authorization: 'secret' };
    const answer = await ask({ tools: [tool] });
    expect(answer.output[1]).toMatchObject({ type: 'mcp_call', output: '20' });
    expect(seen[0]!.endpoint).toEqual({ kind: 'http', url: 'https://mcp.example/mcp', headers: { 'x-a': 'b', authorization: 'Bearer secret' } }); // prettier-ignore
    expect(JSON.stringify(answer)).not.toContain('secret');
    for (const server_url of ['file:///etc/passwd', 'https://me:pw@mcp.example/', 'nonsense']) {
      expect(await fail({ tools: [{ ...never, server_url }] })).toMatchObject({
        status: 400,
        param: 'tools[0].server_url',
      });
    }
  });

  test.each([
    [{ ...never, server_label: 'other' }, 400, 'mcp_server_not_found'],
    [{ ...never, headers: {} }, 400, 'invalid_value'],
    [{ ...never, server_url: 'https://x/', headers: { 'a b': 'c' } }, 400, 'invalid_value'],
    [{ ...never, server_url: 'https://x/', headers: { a: 'c\r\nd: e' } }, 400, 'invalid_value'],
    [{ ...never, require_approval: 'sometimes' }, 400, 'invalid_value'],
    [{ ...never, allowed_tools: ['nothing'] }, 400, 'mcp_tool_not_found'],
    [{ ...never, connector_id: 'connector_gmail' }, 400, 'unsupported'],
    [{ type: 'mcp' }, 400, 'missing_required_parameter'],
  ])('%j is refused', async (tool, status, code) => {
    const { fail } = setUp(['x']);
    const failure = await fail({ tools: [tool] });
    expect(failure.status).toBe(status);
    if (code !== 'missing_required_parameter') expect(failure.code).toBe(code);
  });

  test('are refused twice under one label', async () => {
    expect(await setUp(['x']).fail({ tools: [never, never] })).toMatchObject({ status: 400, param: 'tools' });
  });

  test('belong to the tenants that the operator names', async () => {
    const keys = createKeyStore(createMemoryKeys(), () => 1000);
    const alice = await keys.create({ name: 'a', tenant: 'alice', scopes: ['inference'] });
    const bob = await keys.create({ name: 'b', tenant: 'bob', scopes: ['inference'] });
    const { send } = setUp(['Hi.'], { keys, isOpen: false, configs: [configOf('weather', { tenants: ['alice'] })] });
    expect((await send({ tools: [never] }, alice.token)).status).toBe(200);
    expect((await send({ tools: [never] }, bob.token)).status).toBe(400);
  });
});

test('[MT4] calls are audit entries of their own, sealed and searchable, and no requests in the statistics', async () => {
  const memory = await openTestMemory();
  const { ask } = setUp([call('degrees', { city: 'Rome' }), call('change', {}), WARM], { memory });
  const answer = await ask({ tools: [never], user: 'ann' });
  await memory.audit.flush();
  const { entries } = await memory.audit.search('local', {});
  const tools = entries.map(({ entry }) => entry).filter(({ tool }) => tool !== undefined);
  const requestId = (answer.id as string).slice('resp_'.length);
  expect(tools).toMatchObject([
    { model: 'tool:weather', userId: 'ann', requestId, query: '{}', error: { code: 'tool_failed' }, tool: { server: 'weather', name: 'change', outcome: 'refused' } }, // prettier-ignore
    { model: 'tool:weather', userId: 'ann', requestId, query: '{"city":"Rome"}', response: '20', error: null, tool: { server: 'weather', name: 'degrees', outcome: 'done', numBytes: 2 } }, // prettier-ignore
  ]);
  expect(entries.length - tools.length).toBe(3);
  expect((await memory.audit.aggregate('local', {})).count).toBe(3);
  const shown = (await operationOf('audit.show').run(memory, 'local', { requestId })) as any;
  expect(JSON.stringify(shown)).toContain(WARM);
  expect((await memory.audit.verify('local')).brokenAt).toBeNull();
  await memory.close();
});
