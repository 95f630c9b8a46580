import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { isRecorded, MAX_HISTORY_LINES, openHistory } from './history-file.ts';

const folder = mkdtempSync(join(tmpdir(), 'ruvllm-history-'));
afterAll(() => rmSync(folder, { recursive: true }));
const keyPath = join(folder, 'master.key');

test('keeps lines between chats, encrypted, readable by the owner only, newest first', () => {
  const path = join(folder, 'a');
  openHistory(path, keyPath).add(['two', 'one']);
  openHistory(path, keyPath).add(['three', 'one']);
  expect(openHistory(path, keyPath).load()).toEqual(['three', 'one', 'two']);
  expect(readFileSync(path).includes('three')).toBe(false);
  if (process.platform !== 'win32') expect(statSync(path).mode & 0o777).toBe(0o600);
});

test('does not record lines with a leading space or unsafe characters', () => {
  expect(['a', ' secret', '', '   ', 'x\u009b2J', 'x\u001b[2J', 'x\u202ey', 'y'.repeat(4097)].map(isRecorded)).toEqual([
    true, false, false, false, false, false, false, false,
  ]); // prettier-ignore
  const path = join(folder, 'b');
  openHistory(path, keyPath).add([' secret']);
  expect(openHistory(path, keyPath).load()).toEqual([]);
});

test('keeps at most MAX_HISTORY_LINES lines', () => {
  const path = join(folder, 'c');
  openHistory(path, keyPath).add(Array.from({ length: MAX_HISTORY_LINES + 5 }, (_, i) => `line ${i}`));
  expect(openHistory(path, keyPath).load()).toHaveLength(MAX_HISTORY_LINES);
});

test('rejects a modified file or a wrong key without replacing the file', () => {
  const path = join(folder, 'd');
  openHistory(path, keyPath).add(['one']);
  const other = openHistory(path, join(folder, 'other.key'));
  expect(() => other.load()).toThrow('delete it to start over');
  expect(() => other.add(['x'])).toThrow('delete it to start over');
  const bytes = readFileSync(path);
  bytes[bytes.length - 1]! ^= 1;
  writeFileSync(path, bytes);
  expect(() => openHistory(path, keyPath).load()).toThrow('delete it to start over');
});
