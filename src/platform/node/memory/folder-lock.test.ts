import { spawn } from 'node:child_process';
import { once } from 'node:events';
import * as nodeFiles from 'node:fs';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { CORRUPTIONS, corruptFile } from '../../../../test/support/state-corruptions.ts';
import { ownIdentity } from '../process/process-identity.ts';
import { lockFolder } from './folder-lock.ts';
import { newFolder } from './memory-setup.contract.ts';

const DEAD = JSON.stringify({ ...ownIdentity(), pid: 2 ** 22 - 1, startToken: 'gone', nonce: 'dead' });

function makeFolder(owner: string): { folder: string; lock: string } {
  const folder = newFolder();
  nodeFiles.mkdirSync(folder, { recursive: true });
  const lock = join(folder, 'owner.lock');
  writeFileSync(lock, owner);
  writeFileSync(`${lock}.copy`, owner);
  return { folder, lock };
}

test.each(CORRUPTIONS)('[MS37] a lock of a dead process is taken although it was damaged: $name', (corruption) => {
  const { folder, lock } = makeFolder(DEAD);
  corruptFile({ kind: 'lock', path: lock }, corruption, null);
  const held = lockFolder(nodeFiles, folder);
  held.requireHeld();
  expect(JSON.parse(readFileSync(lock, 'utf8'))).toMatchObject({ pid: process.pid });
  held.release();
  expect([existsSync(lock), existsSync(`${lock}.copy`)]).toEqual([false, false]);
});

test.each(CORRUPTIONS.slice(0, 4))(
  '[MS37] a lock of a running process is respected although it was damaged: $name',
  async (corruption) => {
    const other = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { stdio: 'ignore' });
    try {
      await once(other, 'spawn');
      const { folder, lock } = makeFolder(
        JSON.stringify({ ...ownIdentity(), pid: other.pid, startToken: '', nonce: 'other' }),
      );
      corruptFile({ kind: 'lock', path: lock }, corruption, null);
      expect(() => lockFolder(nodeFiles, folder)).toThrow(`in use by process ${other.pid}`);
    } finally {
      other.kill('SIGKILL');
    }
  },
);

test('[MS37] the owner writes its lock again if it was damaged or removed', () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  try {
    const folder = newFolder();
    nodeFiles.mkdirSync(folder, { recursive: true });
    const lock = join(folder, 'owner.lock');
    const held = lockFolder(nodeFiles, folder);
    const text = readFileSync(lock, 'utf8');
    for (const damage of [() => writeFileSync(lock, ''), () => rmSync(lock), () => rmSync(`${lock}.copy`)]) {
      damage();
      vi.advanceTimersByTime(5000);
      held.requireHeld();
      expect([readFileSync(lock, 'utf8'), readFileSync(`${lock}.copy`, 'utf8')]).toEqual([text, text]);
    }
    held.release();
  } finally {
    vi.useRealTimers();
  }
});
