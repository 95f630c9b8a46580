// The official SDK of MCP as a peer: its client against our servers, its servers against our client.
import { createServer } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { afterEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { openMcpServers } from '../../src/node/mcp/open-mcp-servers.ts';
import { createSpokenModel } from '../support/spoken-model.ts';
import { openTestMemory } from '../support/test-memory.ts';
import { createTestServer, entryOf, listenOnLoopback } from '../support/test-server.ts';
import { isServerBuilt } from '../support/dist-server.ts';

const STDIO_SERVER = fileURLToPath(new URL('sdk-server.mjs', import.meta.url));
const CLI = fileURLToPath(new URL('../../bin/ruvllm.mjs', import.meta.url));
const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
});
const never = new AbortController().signal;

describe('our client', () => {
  async function useTools(settings: Parameters<typeof openMcpServers>[0]) {
    const servers = openMcpServers(settings);
    closing.push(() => servers.close());
    const tools = await servers.tools();
    expect(servers.unusable).toEqual([]);
    expect(tools.map(({ definition, consent }) => [definition.function.name, consent])).toEqual([
      ['add', 'allow'],
      ['fail', 'ask'],
    ]);
    expect(tools[0]!.definition.function.parameters).toMatchObject({ properties: { a: { type: 'number' } }, required: ['a', 'b'] }); // prettier-ignore
    expect(await tools[0]!.call({ a: 2, b: 3 }, never)).toEqual({ text: '5', outcome: 'done', numBytes: 1 });
    expect(await tools[1]!.call({}, never)).toMatchObject({ outcome: 'failed', text: 'it failed' });
    expect(await tools[0]!.call({ a: 'x' }, never)).toMatchObject({ outcome: 'failed' });
    return tools;
  }

  test('uses a server of the SDK over stdio, and a model its tools', async () => {
    const tools = await useTools({ sdk: { command: process.execPath, args: [STDIO_SERVER] } });
    const { model } = createSpokenModel([
      '<tool_call>\n{"name": "add", "arguments": {"a": 20, "b": 22}}\n</tool_call>',
      'It is 42.',
    ]);
    const messages = [{ role: 'user' as const, content: '20 + 22?' }];
    const { text, calls } = await model.runTools({ messages, tools, maxTokens: 500 });
    expect({ text, result: calls[0]!.result }).toEqual({ text: 'It is 42.', result: '42' });
  });

  test.each([true, false])(
    'uses a server of the SDK over HTTP, JSON instead of streams: %s',
    async (enableJsonResponse) => {
      const transports = new Map<string, StreamableHTTPServerTransport>();
      const http = createServer((request, response) => {
        void (async () => {
          const known = transports.get(String(request.headers['mcp-session-id']));
          const transport =
            known ??
            new StreamableHTTPServerTransport({
              sessionIdGenerator: () => crypto.randomUUID(),
              enableJsonResponse,
              onsessioninitialized: (id) => void transports.set(id, transport),
            });
          if (known === undefined) await (await createSdkServer()).connect(transport as never);
          await transport.handleRequest(request, response);
        })();
      });
      http.listen(0, '127.0.0.1');
      await once(http, 'listening');
      closing.push(async () => http.close());
      await useTools({ sdk: { url: `http://127.0.0.1:${(http.address() as AddressInfo).port}/mcp` } });
      expect(transports.size).toBe(1);
    },
  );
});

async function createSdkServer(): Promise<McpServer> {
  const { addTools } = (await import(STDIO_SERVER)) as { addTools(server: McpServer, zod: typeof z): void };
  const server = new McpServer({ name: 'sdk', version: '1' });
  addTools(server, z);
  return server;
}

describe('our server', () => {
  async function useServer(client: Client, names: readonly string[]) {
    closing.push(() => client.close());
    const { tools } = await client.listTools();
    expect(tools.map(({ name }) => name)).toEqual(names);
    const added = await client.callTool({ name: 'memory_add', arguments: { text: 'The library opens at nine.' } });
    expect(added.isError).toBe(false);
    const found = await client.callTool({ name: 'memory_search', arguments: { text: 'library' } });
    expect(JSON.stringify(found.structuredContent)).toContain('opens at nine');
    const wrong = await client.callTool({ name: 'memory_search', arguments: {} });
    expect(wrong.isError).toBe(true);
    await expect(client.callTool({ name: 'nothing', arguments: {} })).rejects.toThrow(/there is no tool "nothing"/);
    await expect(client.listResources()).rejects.toThrow();
  }
  const MEMORY_TOOLS = ['memory_search', 'memory_add', 'memory_list', 'memory_get', 'memory_remove', 'audit_search', 'audit_verify']; // prettier-ignore

  test('answers the SDK’s client over HTTP', async () => {
    const { model } = createSpokenModel(['Hello.']);
    const server = createTestServer([entryOf('m', async () => model)], { memory: await openTestMemory() });
    const listening = await listenOnLoopback(server);
    closing.push(() => listening.close(1000));
    const client = new Client({ name: 'test', version: '1' });
    await client.connect(new StreamableHTTPClientTransport(new URL(`${listening.url}/mcp`)) as never);
    expect(client.getServerVersion()).toMatchObject({ name: 'ruvllm' });
    await useServer(client, [...MEMORY_TOOLS, 'generate']);
    const answer = await client.callTool({ name: 'generate', arguments: { prompt: 'hi' } });
    expect(answer.content).toEqual([{ type: 'text', text: 'Hello.' }]);
  });

  test.skipIf(!isServerBuilt)(
    'answers the SDK’s client over stdio, directly and through a running server',
    async () => {
      const { mkdtemp, rm } = await import('node:fs/promises');
      const { tmpdir } = await import('node:os');
      const folder = await mkdtemp(`${tmpdir()}/ruvllm-mcp-`);
      closing.push(() => rm(folder, { recursive: true, force: true }));
      const env = { PATH: process.env['PATH']!, XDG_DATA_HOME: folder, HOME: folder, HF_HUB_OFFLINE: '1' };
      const direct = new Client({ name: 'test', version: '1' });
      const args = [CLI, 'mcp', '--memory', `${folder}/memory`];
      await direct.connect(
        new StdioClientTransport({ command: process.execPath, args, env, stderr: 'ignore' }) as never,
      );
      await useServer(direct, MEMORY_TOOLS);
      const server = createTestServer([], { memory: await openTestMemory() });
      const listening = await listenOnLoopback(server);
      closing.push(() => listening.close(1000));
      const bridged = new Client({ name: 'test', version: '1' });
      const bridge = [CLI, 'mcp', '--url', listening.url];
      await bridged.connect(
        new StdioClientTransport({ command: process.execPath, args: bridge, env, stderr: 'ignore' }) as never,
      );
      await useServer(bridged, MEMORY_TOOLS);
    },
  );
});
