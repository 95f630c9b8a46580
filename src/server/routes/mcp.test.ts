// RuvLLM as an MCP server over HTTP.
import { beforeAll, describe, expect, test } from 'vitest';
import { createSpokenModel } from '../../../test/support/spoken-model.ts';
import { openTestMemory, type TestMemory } from '../../../test/support/test-memory.ts';
import { createMemoryKeys, createTestServer, entryOf, type TestServer } from '../../../test/support/test-server.ts';
import { createKeyStore } from '../keys/key-store.ts';

let server: TestServer;
let memory: TestMemory;
const tokens = new Map<string, string>();
beforeAll(async () => {
  const keys = createKeyStore(createMemoryKeys(), () => 1000);
  for (const [name, tenant, scope] of [
    ['alice', 'alice', 'inference'],
    ['reader', 'alice', 'read-only'],
    ['bob', 'bob', 'inference'],
  ] as const) {
    tokens.set(name, (await keys.create({ name, tenant, scopes: [scope] })).token);
  }
  memory = await openTestMemory();
  server = createTestServer([entryOf('m', async () => createSpokenModel(['Hello.']).model)], {
    keys,
    isOpen: false,
    memory,
  });
});

const post = (body: unknown, token: string | null, headers: Record<string, string> = {}): Promise<Response> =>
  server.fetch(
    new Request('http://localhost/mcp', {
      method: 'POST',
      body: typeof body === 'string' ? body : JSON.stringify(body),
      headers: {
        'content-type': 'application/json',
        ...(token === null ? {} : { authorization: `Bearer ${tokens.get(token) ?? token}` }),
        ...headers,
      },
    }),
  );
async function ask(method: string, params: object = {}, token = 'alice'): Promise<any> {
  const response = await post({ jsonrpc: '2.0', id: 7, method, params }, token);
  expect(response.status).toBe(200);
  return response.json();
}
const call = async (name: string, args: object, token?: string): Promise<any> =>
  (await ask('tools/call', { name, arguments: args }, token)).result;

describe('[MS1] POST /mcp', () => {
  test('initializes with a version that both know', async () => {
    for (const [wanted, chosen] of [
      ['2025-06-18', '2025-06-18'],
      ['1999-01-01', '2025-11-25'],
    ]) {
      const { result } = await ask('initialize', { protocolVersion: wanted });
      expect(result).toMatchObject({ protocolVersion: chosen, capabilities: { tools: {} }, serverInfo: { name: 'ruvllm' } }); // prettier-ignore
    }
    expect((await post({ jsonrpc: '2.0', method: 'notifications/initialized' }, 'alice')).status).toBe(202);
    expect((await ask('ping')).result).toEqual({});
  });

  test('offers the tools that the key allows, with their schemas', async () => {
    const names = async (token: string) => (await ask('tools/list', {}, token)).result.tools.map((tool: any) => tool.name); // prettier-ignore
    expect(await names('alice')).toEqual(['memory_search', 'memory_add', 'memory_list', 'memory_get', 'memory_remove', 'audit_search', 'audit_verify', 'generate']); // prettier-ignore
    expect(await names('reader')).toEqual([
      'memory_search',
      'memory_list',
      'memory_get',
      'audit_search',
      'audit_verify',
    ]);
    for (const { inputSchema, annotations, name } of (await ask('tools/list')).result.tools) {
      expect(inputSchema.type).toBe('object');
      expect(annotations.readOnlyHint).toBe(!['memory_add', 'memory_remove'].includes(name));
    }
  });

  test('adds, finds, lists and removes texts of the tenant of the key only', async () => {
    const { id } = (await call('memory_add', { text: 'The library opens at nine.' })).structuredContent;
    const found = await call('memory_search', { text: 'when does the library open' });
    expect(found.structuredContent.results[0]).toMatchObject({ id, text: 'The library opens at nine.' });
    expect(JSON.parse(found.content[0].text)).toEqual(found.structuredContent);
    expect((await call('memory_search', { text: 'library' }, 'bob')).structuredContent.results).toEqual([]);
    expect((await call('memory_get', { id }, 'bob')).isError).toBe(true);
    expect((await call('memory_remove', { ids: [id] }, 'bob')).structuredContent).toEqual({ numRemoved: 0 });
    expect(JSON.stringify(await call('memory_list', {}))).toContain('opens at nine');
    expect((await call('memory_remove', { ids: [id] })).structuredContent).toEqual({ numRemoved: 1 });
  });

  test('generates, and its audit entry is found and verified', async () => {
    expect((await call('generate', { prompt: 'Say hello', maxTokens: 20 })).content[0].text).toBe('Hello.');
    await memory.audit.flush();
    expect((await call('audit_search', { text: 'Say hello' })).structuredContent.entries).toHaveLength(1);
    expect((await call('audit_search', { text: 'Say hello' }, 'bob')).structuredContent.entries).toEqual([]);
    expect((await call('audit_verify', {})).structuredContent).toMatchObject({ brokenAt: null });
  });

  test('a key that may only read cannot call a tool that it does not see', async () => {
    const { error } = await ask('tools/call', { name: 'memory_add', arguments: { text: 'x' } }, 'reader');
    expect(error).toEqual({ code: -32602, message: 'there is no tool "memory_add"' });
  });

  test('errors of tools are results that say what is wrong', async () => {
    expect(await call('memory_search', {})).toMatchObject({ isError: true, content: [{ text: expect.stringMatching(/^invalid_option: .*text/) as string }] }); // prettier-ignore
    expect(await call('memory_search', { text: 'x', surprise: 1 })).toMatchObject({ isError: true });
    expect(await call('generate', { prompt: 'x', model: 'none' })).toMatchObject({ isError: true, content: [{ text: expect.stringContaining('none') as string }] }); // prettier-ignore
  });

  test.each<[string, unknown, number, number?]>([
    ['a batch', [{ jsonrpc: '2.0', id: 1, method: 'ping' }], -32600, 400],
    ['no version', { id: 1, method: 'ping' }, -32600, 400],
    ['an id that is an object', { jsonrpc: '2.0', id: { toString: 1 }, method: 'ping' }, -32600, 400],
    ['a text of a megabyte as id', { jsonrpc: '2.0', id: 'x'.repeat(1 << 20), method: 'ping' }, -32600, 400],
    [
      'a list 60,000 deep',
      `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":${'['.repeat(60_000)}${']'.repeat(60_000)}}}`,
      -32600,
      400,
    ],
    ['an unknown method', { jsonrpc: '2.0', id: 1, method: 'resources/list' }, -32601],
    ['no such tool', { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: '__proto__' } }, -32602],
    [
      'a tool without a text as its name',
      { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: { toString: 1, valueOf: 1 } } },
      -32602,
    ],
    [
      'a list as the name of a tool',
      { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: [[{ toString: 1 }]] } },
      -32602,
    ],
    ['arguments that are no object', { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'generate', arguments: [] } }, -32602], // prettier-ignore
  ])('[MT6] %s is an error of the protocol', async (_name, body, code, status = 200) => {
    const response = await post(body, 'alice');
    expect(response.status).toBe(status);
    expect(((await response.json()) as any).error.code).toBe(code);
  });

  test.each([
    ['no key', () => post({ jsonrpc: '2.0', id: 1, method: 'ping' }, null), 401],
    ['a wrong key', () => post({ jsonrpc: '2.0', id: 1, method: 'ping' }, 'ruvllm-x'), 401],
    ['no JSON', () => post('{', 'alice'), 400],
    ['an unknown version', () => post({ jsonrpc: '2.0', id: 1, method: 'ping' }, 'alice', { 'mcp-protocol-version': '1999-01-01' }), 400], // prettier-ignore
  ])('%s is refused in the format of JSON-RPC', async (_name, send, status) => {
    const response = await send();
    expect(response.status).toBe(status);
    expect(await response.json()).toMatchObject({ jsonrpc: '2.0', id: null, error: { message: expect.any(String) as string } }); // prettier-ignore
  });

  test('has no stream of its own: GET is a 405, which clients know', async () => {
    const headers = { authorization: `Bearer ${tokens.get('alice')}` };
    expect((await server.fetch(new Request('http://localhost/mcp', { headers }))).status).toBe(405);
  });
});
