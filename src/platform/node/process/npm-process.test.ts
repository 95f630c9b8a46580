import { tmpdir } from 'node:os';
import { expect, test } from 'vitest';
import { createNodeHubPlatform } from './hub-platform.ts';
import { runNpmProcess } from './npm-process.ts';

test("the user's npm is run without a shell and its output collected", async () => {
  const outcome = await runNpmProcess(['--version'], { folder: tmpdir(), signal: null });
  expect(outcome.exitCode).toBe(0);
  expect(outcome.stdout).toMatch(/^\d+\.\d+\.\d+\s*$/);
  const literal = await runNpmProcess(['--version', '--', '$(touch x); `id`'], { folder: tmpdir(), signal: null });
  expect(literal.stdout).toBe(outcome.stdout);
});

test('a signal stops npm', async () => {
  await expect(runNpmProcess(['--version'], { folder: tmpdir(), signal: AbortSignal.abort() })).rejects.toMatchObject({
    code: 'aborted',
  });
});

test('this process is alive, a pid beyond the last is not, another host cannot be known', () => {
  const { identity, isProcessAlive } = createNodeHubPlatform();
  expect(isProcessAlive(identity)).toBe(true);
  expect(isProcessAlive({ ...identity, pid: 2 ** 22 + 1 })).toBe(false);
  expect(isProcessAlive({ ...identity, pid: 2 ** 22 + 1, host: 'elsewhere' })).toBe(true);
});
