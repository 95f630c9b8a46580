import { describe, expect, test } from 'vitest';
import { createFakeIo } from '../../../test/support/cli-io.ts';
import { COMMANDS } from '../commands.ts';
import { runCli } from '../run-cli.ts';

const run = async (...args: string[]) => {
  const io = createFakeIo();
  const code = await runCli(args, '1.0.0', io);
  return { code, ...io.written };
};

describe('what is typed wrong is told before anything is opened', () => {
  test.each([
    [['memory', 'forget'], 'memory knows add, search,'],
    [['memory', 'toString'], 'memory knows add, search,'],
    [['memory', 'search'], 'memory search needs <query>'],
    [['memory', 'search', 'a', 'b'], 'does not know what to do with "b"'],
    [['memory', 'stats', '--k', '1'], 'memory stats has no --k'],
    [['memory', 'stats', '--api-key', 'x'], '--api-key needs --url'],
    [['memory', 'stats', '--url', 'http://x', '--memory', 'y'], '--memory is for a memory on this machine'],
    [['memory', 'search', 'a', '--memory-embedder', 'statik'], '--memory-embedder must be static, model or'],
    [
      ['memory', 'stats', '--url', 'http://x', '--memory-embedder', 'model'],
      '--memory-embedder is for a memory on this',
    ],
    [['memory', 'erase-tenant', 'a', '--confirm', 'b'], 'erasing a needs --confirm a'],
    [['memory', 'rotate-key', '--tenant', 'x'], 'memory rotate-key has no --tenant'],
    [['memory', 'rotate-key', '--url', 'http://x'], 'one new key is needed'],
    [['audit', 'search', '--failed', '--succeeded', '--url', 'http://127.0.0.1:9'], '--failed and --succeeded'],
    [['audit', 'search', '--min-ms', 'fast'], '--min-ms must be a number'],
    [['sessions', 'rm'], 'sessions rm needs <id>'],
  ])('%j', async (args, message) => {
    const { code, stdout, stderr } = await run(...args);
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toContain(message);
  });
});

test('the help lists the actions, and tells the two kinds of sessions apart', async () => {
  for (const name of ['memory', 'audit', 'sessions']) {
    expect(COMMANDS.some((command) => command.name === name)).toBe(true);
    expect((await run(name, '--help')).stdout).toMatch(/\nActions:\n {2}\w+ /);
  }
  expect((await run('sessions', '--help')).stdout).toContain('/admin/sessions/TENANT');
});
