import { describe, expect, test } from 'vitest';
import { createFakeIo } from '../../../test/support/cli-io.ts';
import { COMMANDS } from '../commands.ts';
import { runCli } from '../run-cli.ts';

const run = async (...args: string[]) => {
  const io = createFakeIo();
  const code = await runCli(args, '1.0.0', io);
  return { code, ...io.written };
};

describe('rejects invalid command lines before opening anything', () => {
  test.each([
    [['memory', 'forget'], 'unknown action "forget"; memory has add, documents, document, search,'],
    [['memory', 'toString'], 'unknown action "toString"; memory has add, documents, document, search,'],
    [['memory', 'search'], 'memory search requires <query>'],
    [['memory', 'search', 'a', 'b'], 'unexpected argument "b" of memory search'],
    [['memory', 'stats', '--k', '1'], '--k is not an option of memory stats'],
    [['memory', 'stats', '--api-key', 'x'], '--api-key requires --url'],
    [['memory', 'stats', '--url', 'http://x', '--memory', 'y'], '--memory cannot be combined with --url'],
    [['memory', 'search', 'a', '--memory-embedder', 'statik'], '--memory-embedder must be encoder, static, model or'],
    [
      ['memory', 'stats', '--url', 'http://x', '--memory-embedder', 'model'],
      '--memory-embedder cannot be combined with --url',
    ],
    [['memory', 'erase-tenant', 'a', '--confirm', 'b'], 'erasing a requires --confirm a'],
    [['memory', 'rotate-key', '--tenant', 'x'], '--tenant is not an option of memory rotate-key'],
    [['memory', 'rotate-key', '--url', 'http://x'], 'requires exactly one new key'],
    [['audit', 'search', '--failed', '--succeeded', '--url', 'http://127.0.0.1:9'], '--failed cannot be combined'],
    [['audit', 'search', '--min-ms', 'fast'], '--min-ms must be a number'],
    [['memory', 'add', '', '--url', 'http://127.0.0.1:9'], 'memory add requires a text'],
    [['learn', 'forget', '--url', 'http://x'], 'learn forget requires one of --request, --session or --user'],
    [['learn', 'forget', '--user', 'a', '--session', 'b'], 'requires one of --request, --session or --user'],
    [['sessions', 'rm'], 'sessions rm requires <id>'],
  ])('%j', async (args, message) => {
    const { code, stdout, stderr } = await run(...args);
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toContain(message);
  });
});

test('lists actions in the help, and names the other kind of sessions', async () => {
  for (const name of ['memory', 'audit', 'sessions']) {
    expect(COMMANDS.some((command) => command.name === name)).toBe(true);
    expect((await run(name, '--help')).stdout).toMatch(/\nActions:\n {2}\w+ /);
  }
  expect((await run('sessions', '--help')).stdout).toContain('/admin/sessions/TENANT');
});
