import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { nodeHubFiles } from './hub-files.ts';

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), 'ruvllm-hub-files-'));
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

test('createExclusive creates once', async () => {
  const path = join(folder(), 'lock');
  expect(await nodeHubFiles.createExclusive(path, 'me')).toBe(true);
  expect(await nodeHubFiles.createExclusive(path, 'you')).toBe(false);
  expect(readFileSync(path, 'utf8')).toBe('me');
});

test('createExclusive on a full disk leaves no empty file', async () => {
  const root = folder();
  const handle = await open(root);
  const full = Object.assign(new Error('no space'), { code: 'ENOSPC' });
  const write = vi.spyOn(Object.getPrototypeOf(handle) as typeof handle, 'writeFile').mockRejectedValue(full);
  onTestFinished(() => write.mockRestore());
  await handle.close();
  await expect(nodeHubFiles.createExclusive(join(root, 'lock'), 'me')).rejects.toMatchObject({ code: 'disk_full' });
  expect(readdirSync(root)).toEqual([]);
});

test('isFile is false, not an error, for a name no file can have', () => {
  expect(nodeHubFiles.isFile('x'.repeat(5000))).toBe(false);
  expect(nodeHubFiles.isFile(folder())).toBe(false);
});
