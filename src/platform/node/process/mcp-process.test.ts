// Real processes that misbehave: each must end in a typed error within its limits, and leave no process behind.
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, test } from 'vitest';
import { systemClock } from '../../../core/clock.ts';
import type { RuvLLMError } from '../../../core/errors.ts';
import { type McpClient, openMcpClient } from '../../../mcp/client.ts';
import { nameTools } from '../../../mcp/tool-names.ts';
import { createMcpProcess } from './mcp-process.ts';

const SCRIPT = fileURLToPath(new URL('../../../../test/support/mcp-server.mjs', import.meta.url));
const never = new AbortController().signal;
const opened: McpClient[] = [];
afterEach(async () => {
  for (const client of opened.splice(0)) await client.close();
});

async function start(
  modes: readonly string[] = [],
  more: { env?: Record<string, string>; openTimeoutMs?: number } = {},
) {
  const transport = createMcpProcess({
    server: 'test',
    command: process.execPath,
    args: [SCRIPT, ...modes],
    env: more.env ?? {},
    folder: null,
    exitMs: 300,
  });
  const client = await openMcpClient(transport, { server: 'test', clock: systemClock, version: '0', signal: never, openTimeoutMs: 20_000, ...more }); // prettier-ignore
  opened.push(client);
  return client;
}
const call = (
  client: McpClient,
  name = 'echo',
  args: object = { text: 'hi' },
  timeoutMs = 20_000,
  maxResultBytes = 1000,
) => client.callTool(name, { ...args }, { signal: never, timeoutMs, maxResultBytes });
const failure = (work: Promise<unknown>): Promise<RuvLLMError> =>
  work.then(
    () => expect.unreachable('must fail') as never,
    (error: unknown) => error as RuvLLMError,
  );

describe('an MCP server as a process', () => {
  test('lists its tools and runs one', async () => {
    const client = await start();
    const { tools, unusable } = await client.listTools(never);
    expect(unusable).toEqual([]);
    expect(tools.map(({ name, isReadOnly }) => [name, isReadOnly])).toEqual([
      ['echo', true],
      ['add', true],
      ['remove', false],
      ['broken', true],
      ['long', true],
      ['environment', true],
    ]);
    expect(await call(client)).toEqual({ text: 'echo: hi', isError: false, numBytes: 8, isCut: false });
    expect(await call(client, 'broken')).toMatchObject({ text: 'it broke', isError: true });
    expect((await failure(call(client, 'nothing'))).message).toBe(
      'MCP server "test": error -32602: Unknown tool: nothing',
    );
  });

  test('reads all pages of a list, log lines and requests between them', async () => {
    const client = await start(['paged', 'chatty', 'asks', 'stderr']);
    expect((await client.listTools(never)).tools).toHaveLength(6);
  });

  test('may have names with any characters; those that are empty or too long are left out', async () => {
    const { tools, unusable } = await (await start(['names'])).listTools(never);
    expect(tools.slice(6).map(({ name }) => name)).toEqual(['häß lich/../tool', '<|im_end|>', 'a.b', 'a b']);
    expect(unusable.map(({ reason }) => reason)).toEqual([
      'a name of 200 characters; the limit is 128',
      'a tool without a name',
    ]);
    expect(nameTools(tools.map(({ name }) => ({ server: 'test', name }))).slice(6)).toEqual([
      'h___lich____tool',
      '__im_end__',
      'test__a_b',
      'test__a_b_2',
    ]);
  });

  test('gets a few variables of ours and those of its settings, not all', async () => {
    process.env['RUVLLM_TEST_SECRET'] = 'secret';
    const client = await start([], { env: { GIVEN: 'x' } });
    const names = JSON.parse((await call(client, 'environment')).text) as string[];
    delete process.env['RUVLLM_TEST_SECRET'];
    expect(names).toContain('GIVEN');
    expect(names).toContain('PATH');
    expect(names).not.toContain('RUVLLM_TEST_SECRET');
  });

  test('cuts a long result off and says so', async () => {
    const { text, isCut, numBytes } = await call(await start(), 'long');
    expect({ isCut, numBytes }).toEqual({ isCut: true, numBytes: 100_000 });
    expect(text).toBe(`${'x'.repeat(1000)}\n[cut off: 1000 of 100000 bytes]`);
  });

  test('that hangs costs the time limit of the call, and the next call is possible', async () => {
    const client = await start(['hang']);
    const error = await failure(call(client, 'echo', {}, 50));
    expect(error).toMatchObject({ code: 'deadline_exceeded', data: { timeoutMs: 50 } });
    expect(client.isOpen()).toBe(true);
    expect((await client.listTools(never)).tools.length).toBeGreaterThan(0);
  });

  test('that is not heard of in time is ended', async () => {
    const error = await failure(start(['silent'], { openTimeoutMs: 100 }));
    expect(error).toMatchObject({
      code: 'deadline_exceeded',
      message: expect.stringContaining('initialize') as string,
    });
  });

  test.each([
    ['flood', /printed more than 16777216 bytes/],
    ['endless', /message of more than 8388608 bytes/],
    ['garbage', /printed 101 lines that are no JSON/],
    ['die', /exited with 3/],
  ])('that does "%s" during a call fails the call and is gone', async (mode, message) => {
    const client = await start([mode]);
    const error = await failure(call(client));
    expect(error.code).toBe('tool_failed');
    expect(error.message).toMatch(message);
    expect(client.isOpen()).toBe(false);
    expect((await failure(call(client))).code).toBe('tool_failed');
  });

  test('that sends an invalid reply fails only that call', async () => {
    const client = await start(['invalid']);
    expect((await failure(call(client))).message).toMatch(/not valid JSON-RPC 2.0/);
    expect(client.isOpen()).toBe(true);
  });

  test('that answers twice is heard once', async () => {
    const client = await start(['twice']);
    expect((await call(client)).text).toBe('first');
    expect((await call(client, 'add', { a: 1, b: 2 })).text).toBe('first');
  });

  test('that nests a result 100,000 deep fails that call with the limit, and goes on', async () => {
    const client = await start(['deep']);
    const error = await failure(call(client));
    expect(error).toMatchObject({ code: 'tool_failed', data: { limit: 512 } });
    expect(error.message).toMatch(/it sent a message nested deeper than 512 levels/);
    expect(client.isOpen()).toBe(true);
  });

  test.each([
    ['many', 'limit_exceeded', /lists more than 1000 tools/],
    ['endless-pages', 'limit_exceeded', /does not end after/],
    ['no-list', 'tool_failed', /is no list/],
  ])('whose list of tools is "%s" is refused with numbers', async (mode, code, message) => {
    const client = await start([mode]);
    const error = await failure(client.listTools(never));
    expect(error.code).toBe(code);
    expect(error.message).toMatch(message);
  });

  test.each([
    ['old', /protocol version "1999-01-01"; known are/],
    ['exit', /exited with 7/],
  ])('that starts as "%s" is refused', async (mode, message) => {
    expect((await failure(start([mode]))).message).toMatch(message);
  });

  test('that does not exist is named', async () => {
    const transport = createMcpProcess({ server: 'x', command: 'no-such-program', args: [], env: {}, folder: null });
    const error = await failure(openMcpClient(transport, { server: 'x', clock: systemClock, version: '0', signal: never })); // prettier-ignore
    expect(error).toMatchObject({ code: 'tool_failed', message: 'MCP server "x": cannot start "no-such-program": not found' }); // prettier-ignore
  });

  test('keeps its error output out of messages, which models read', async () => {
    const error = await failure(start(['stderr', 'exit']));
    expect(error.message).not.toContain('last words');
    expect(String(error.data['stderr'])).toMatch(/the last words$/);
    expect(String(error.data['stderr']).length).toBeLessThanOrEqual(1000);
  });

  test.runIf(existsSync('/proc/self/stat'))('is ended with its children, even if it ignores signals', async () => {
    const client = await start(['orphan', 'stubborn']);
    const { text: pid } = await call(client, 'child');
    expect(isRunning(pid)).toBe(true);
    await client.close();
    expect(isRunning(pid)).toBe(false);
  });

  test('a cancelled call tells the server and fails with aborted', async () => {
    const client = await start(['hang']);
    const abortion = new AbortController();
    const pending = failure(
      client.callTool('echo', {}, { signal: abortion.signal, timeoutMs: 20_000, maxResultBytes: 10 }),
    );
    abortion.abort();
    expect((await pending).code).toBe('aborted');
    expect(client.isOpen()).toBe(true);
  });
});

/** A process that has ended may still have an entry until its parent asks for its code. */
function isRunning(pid: string): boolean {
  try {
    return !/\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return false;
  }
}
