// MCP through the built package: a real model whose grammar forces a tool call, a real process as the server.
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import OpenAI from 'openai';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { McpServers, Model } from '../src/index.ts';
import { type DistServer, isServerBuilt, startDistServer } from './support/dist-server.ts';
import { importDist } from './support/import-dist.ts';
import { hasOpenapi, violationsOf } from './support/openapi-schemas.ts';
import { runCommand } from './support/run-command.ts';

const SERVER = join(import.meta.dirname, 'support/mcp-server.mjs');
const STORIES = join(import.meta.dirname, '../../shared/models/stories15M-q8_0.gguf');
if (!existsSync(STORIES)) console.log('skipped: ../shared/models/stories15M-q8_0.gguf not found');
const local = { command: process.execPath, args: [SERVER] };
const folder = mkdtempSync(join(tmpdir(), 'ruvllm-mcp-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe.skipIf(!isServerBuilt || !existsSync(STORIES))('a model of stories', () => {
  let model: Model;
  let servers: McpServers;
  beforeAll(async () => {
    const library = await importDist<typeof import('../src/index.ts')>('index.js');
    model = await library.loadModel(STORIES, { numThreads: 1 });
    servers = await library.openMcpServers({ local: { ...local, tools: { echo: 'deny', remove: 'deny', broken: 'deny', long: 'deny', environment: 'deny' } } }); // prettier-ignore
  });
  afterAll(async () => {
    await servers.close();
    await model.dispose();
  });

  test('calls a tool of a process because its grammar forces it, and goes on with the result', async () => {
    const messages = [{ role: 'user' as const, content: 'Add.' }];
    const tools = await servers.tools();
    expect(tools).toHaveLength(1);
    const result = await model.runTools({ messages, tools, toolChoice: { name: 'add' }, seed: 1, maxTokens: 60, clampMaxTokens: true, parallelToolCalls: false }); // prettier-ignore
    const { name, server, arguments: args, result: text, outcome } = result.calls[0]!;
    expect({ name, server, outcome }).toEqual({ name: 'add', server: 'local', outcome: 'done' });
    const { a, b } = args as { a: number; b: number };
    expect([a, b].every((one) => Number.isInteger(one) && one >= 0 && one <= 9)).toBe(true);
    expect(text).toBe(String(a + b));
    expect(result.numRounds).toBeGreaterThanOrEqual(2);
    expect(result.messages[1]).toMatchObject({ role: 'tool', content: text });
  });
});

describe.skipIf(!isServerBuilt)('the built server', () => {
  let server: DistServer;
  let client: OpenAI;
  beforeAll(async () => {
    const { createMcpServerPool } = await importDist<typeof import('../src/mcp/server-pool.ts')>('mcp/server-pool.js');
    const { connectMcp, connectPublicMcp } = await importDist<typeof import('../src/node/mcp/connect-mcp.ts')>('node/mcp/connect-mcp.js'); // prettier-ignore
    const { systemClock } = await importDist<typeof import('../src/core/clock.ts')>('core/clock.js');
    const endpoint = { kind: 'stdio' as const, ...local, env: {}, folder: null };
    const limits = {
      consent: { server: null, tools: new Map() },
      timeoutMs: 20_000,
      maxResultBytes: 1000,
      maxAgeMs: 0,
      tenants: null,
    };
    const configs = [
      { name: 'local', endpoint, ...limits },
      { name: 'hostile', endpoint: { ...endpoint, args: [SERVER, 'hostile-schema'] }, ...limits },
    ];
    const pool = createMcpServerPool(configs, { connect: connectMcp, clock: systemClock, version: '0' });
    server = await startDistServer({ contextLength: 4096, mcp: { pool, connectPublic: connectPublicMcp } });
    client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: 'none', maxRetries: 0 });
  });
  afterAll(() => server?.[Symbol.asyncDispose]());

  test('runs a required call of an MCP tool for OpenAI’s client, at once and as a stream', async () => {
    const ask = {
      model: 'random',
      input: 'hi',
      max_output_tokens: 120,
      temperature: 0,
      tools: [
        { type: 'mcp' as const, server_label: 'local', allowed_tools: ['add'], require_approval: 'never' as const },
      ],
      tool_choice: { type: 'mcp' as const, server_label: 'local', name: 'add' },
      parallel_tool_calls: false,
    };
    const answer = await client.responses.create(ask);
    if (hasOpenapi) expect(violationsOf('Response', answer)).toEqual([]);
    const call = answer.output.find((item) => item.type === 'mcp_call')!;
    const { a, b } = JSON.parse(call.arguments) as { a: number; b: number };
    expect(call).toMatchObject({ name: 'add', output: String(a + b), status: 'completed' });
    const types: string[] = [];
    for await (const event of await client.responses.create({ ...ask, stream: true })) {
      types.push(event.type);
      if (event.type === 'response.completed' || event.type === 'response.incomplete') {
        const same = event.response.output.find((item) => item.type === 'mcp_call')!;
        expect(same.output).toBe(call.output);
      }
    }
    expect(types).toContain('response.mcp_call.completed');
  });

  test('answers beside a tool whose schema explodes; tools that are too large are left out', async () => {
    const tools = [{ type: 'mcp' as const, server_label: 'hostile', allowed_tools: ['exploding', 'echo'], require_approval: 'never' as const }]; // prettier-ignore
    const answer = await client.responses.create({ model: 'random', input: 'hi', max_output_tokens: 8, tools });
    expect(answer.status).toMatch(/completed|incomplete/);
    const listed = answer.output[0] as { tools: { name: string }[] };
    expect(listed.tools.map(({ name }) => name)).toEqual(['echo', 'exploding']);
    // A call that must be in that schema is refused, and the server answers the next request.
    const forced = { type: 'mcp' as const, server_label: 'hostile', name: 'exploding' };
    const refused = client.responses.create({ model: 'random', input: 'hi', max_output_tokens: 8, tools, tool_choice: forced }); // prettier-ignore
    await expect(refused).rejects.toMatchObject({ status: 400 });
    const all = { ...tools[0]!, allowed_tools: undefined };
    const offered = await client.responses.create({ model: 'random', input: 'hi', max_output_tokens: 8, tools: [all as never] }); // prettier-ignore
    const names = (offered.output[0] as { tools: { name: string }[] }).tools.map(({ name }) => name);
    expect(names).not.toContain('deep');
    expect(names).not.toContain('wide');
    expect(names).not.toContain('list');
  });

  test.each([
    'http://127.0.0.1:1/mcp',
    'http://localhost/mcp',
    'http://[::1]/',
    'http://169.254.169.254/',
    'http://10.0.0.1/',
  ])('does not connect to %s for a caller', async (url) => {
    const tools = [{ type: 'mcp' as const, server_label: 'x', server_url: url, require_approval: 'never' as const }];
    const failed = client.responses.create({ model: 'random', input: 'hi', tools });
    await expect(failed).rejects.toThrow(/502 .*its address is not public/);
  });
});

describe.skipIf(!isServerBuilt || !existsSync(STORIES))('ruvllm run --mcp', () => {
  const run = (settings: object, ...args: string[]) => {
    const config = join(folder, 'ruvllm.config.json');
    writeFileSync(config, JSON.stringify(settings));
    const environment = { PATH: process.env['PATH'], HOME: folder, XDG_DATA_HOME: folder, TOKEN: 't' };
    return runCommand(['run', STORIES, 'Once', '--max-tokens', '4', '--config', config, ...args], { environment });
  };

  test('offers the tools of a server of the settings file', async () => {
    const tools = { echo: 'deny', remove: 'deny', broken: 'deny', long: 'deny', environment: 'deny' };
    const { status, stderr } = await run({ mcpServers: { local: { ...local, tools } } }, '--mcp', 'local', '--chat');
    expect(stderr).toContain('tools: add');
    expect(status).toBe(0);
  });

  test.each([
    [{ mcpServers: { local } }, ['--mcp', 'other'], /has no such MCP server \(it has: local\)/],
    [{}, ['--mcp', 'local'], /has no such MCP server \(it has: none\)/],
    [{ mcpServers: { local } }, ['--mcp', 'local', '--raw'], /--mcp cannot be combined with --raw/],
    [{ mcpServers: { local: { ...local, env: { A: '${MISSING}' } } } }, ['--mcp', 'local'], /names the environment variable MISSING, which is not set/], // prettier-ignore
    [{ mcpServers: { local: { command: 'x', comand: 'y' } } }, [], /unknown setting "comand" .*did you mean command/],
  ])('%j %j is refused', async (settings, args, message) => {
    const { status, stderr } = await run(settings, ...args);
    expect(status).toBe(2);
    expect(stderr).toMatch(message);
  });

  test('a server that fails to start is named, with the end of its error output', async () => {
    const settings = { mcpServers: { local: { ...local, args: [SERVER, 'stderr', 'exit'] } } };
    const { status, stderr } = await run(settings, '--mcp', 'local');
    expect(status).not.toBe(0);
    expect(stderr).toContain('MCP server "local": it exited with 7');
    expect(stderr).toContain('the last words');
  });
});
