// `ruvllm mcp`: the built command on its standard streams.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { isServerBuilt } from './support/dist-server.ts';
import { runCommand } from './support/run-command.ts';

const folder = mkdtempSync(join(tmpdir(), 'ruvllm-mcp-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const environment = { PATH: process.env['PATH'], HOME: folder, XDG_DATA_HOME: folder, HF_HUB_OFFLINE: '1' };

/** The replies to these lines. */
async function ask(args: readonly string[], ...messages: (object | string)[]): Promise<any[]> {
  const input = messages.map((one) => (typeof one === 'string' ? one : JSON.stringify({ jsonrpc: '2.0', ...one }))).join('\n'); // prettier-ignore
  const { status, stdout, stderr } = await runCommand(['mcp', ...args], { environment, input });
  expect(status, stderr).toBe(0);
  return stdout.trim().split('\n').filter((line) => line !== '').map((line) => JSON.parse(line) as unknown); // prettier-ignore
}
const call = (id: number, name: string, args: object): object => ({ id, method: 'tools/call', params: { name, arguments: args } }); // prettier-ignore
const place = (name: string): string[] => ['--memory', join(folder, name)];

describe.skipIf(!isServerBuilt)('ruvllm mcp', () => {
  test('keeps texts between runs, for the tenant that is named', async () => {
    const text = 'The library opens at nine.';
    const [added] = await ask(place('a'), call(1, 'memory_add', { text }));
    expect(added.result.isError, JSON.stringify(added)).toBe(false);
    const [listed] = await ask(place('a'), call(1, 'memory_list', {}));
    expect(JSON.stringify(listed.result)).toContain(text);
    const [other] = await ask([...place('a'), '--tenant', 'other'], call(1, 'memory_list', {}));
    expect(JSON.stringify(other.result)).not.toContain(text);
  });

  test('with --read-only offers no tool that writes', async () => {
    const [list, refused] = await ask([...place('b'), '--read-only'], { id: 1, method: 'tools/list' }, call(2, 'memory_add', { text: 'x' })); // prettier-ignore
    expect(list.result.tools.map(({ name }: { name: string }) => name)).toEqual(['memory_search', 'memory_list', 'memory_get', 'audit_search', 'audit_verify']); // prettier-ignore
    expect(refused.error.code).toBe(-32602);
  });

  test('answers broken lines in the protocol and goes on', async () => {
    const replies = await ask(
      place('c'),
      '{',
      '',
      '[]',
      { method: 'notifications/initialized' },
      { id: 1, method: 'ping' },
    );
    expect(replies.map(({ id, error }) => [id, error?.code ?? null])).toEqual([
      [null, -32700],
      [null, -32600],
      [1, null],
    ]);
  });

  test('says that a server cannot be reached, to the request that asked', async () => {
    const [reply] = await ask(['--url', 'http://127.0.0.1:9'], { id: 'x', method: 'ping' });
    expect(reply).toMatchObject({ id: 'x', error: { code: -32603, message: expect.stringContaining('cannot reach') as string } }); // prettier-ignore
  });

  test.each([
    [['--url', 'http://127.0.0.1:9', '--read-only'], /--read-only cannot be combined with --url/],
    [['--api-key', 'x'], /--api-key requires --url/],
  ])('%j is refused', async (args, message) => {
    const { status, stderr } = await runCommand(['mcp', ...args], { environment });
    expect(status).toBe(2);
    expect(stderr).toMatch(message);
  });
});
