import { mkdirSync, readdirSync, readFileSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { createTestPlatform } from './fake-hub.contract.ts';
import { resolveHubOptions } from './hub-options.ts';
import { acquireLock, isLocked } from './lock.ts';
import type { PullContext } from './pull-context.ts';

function setUp(): {
  context: PullContext;
  folder: string;
  plant: (text: string, ageMs?: number) => void;
  phases: string[];
} {
  const platform = createTestPlatform();
  const phases: string[] = [];
  const onProgress: PullContext['onProgress'] = ({ phase }) => void phases.push(phase);
  const context = {
    platform,
    options: resolveHubOptions({ platform }),
    token: null,
    namedOrigins: [],
    signal: null,
    onProgress,
  };
  const folder = join(platform.cacheRoot, 'locks');
  const plant = (text: string, ageMs = 0): void => {
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, 'x.lock'), text);
    const then = new Date(Date.now() - ageMs);
    utimesSync(join(folder, 'x.lock'), then, then);
  };
  return { context, folder, plant, phases };
}

test('grants the lock to one holder at a time and leaves no file', async () => {
  const { context, folder } = setUp();
  let holders = 0;
  await Promise.all(
    Array.from({ length: 8 }, async () => {
      const lock = await acquireLock(context, folder, 'x');
      expect(++holders).toBe(1);
      await context.platform.sleep(1, null);
      await lock.requireHeld();
      holders--;
      await lock.release();
    }),
  );
  expect(readdirSync(folder)).toEqual([]);
});

test('lets exactly one waiter take over the lock of a dead process, or of a later one with its pid', async () => {
  const { host, startToken } = setUp().context.platform.identity;
  for (const owner of [
    { host, pid: 2 ** 22 + 1, startToken: '1' },
    { host, pid: process.pid, startToken: `${startToken}1` },
  ]) {
    const { context, folder, plant } = setUp();
    if (owner.pid === process.pid && startToken === '') continue; // Without /proc such a process cannot be distinguished.
    plant(JSON.stringify(owner));
    expect(await isLocked(context, folder, 'x')).toBe(false);
    let holders = 0;
    await Promise.all(
      Array.from({ length: 6 }, async () => {
        const lock = await acquireLock(context, folder, 'x');
        expect(++holders).toBe(1);
        await context.platform.sleep(1, null);
        holders--;
        await lock.release();
      }),
    );
    expect(readdirSync(folder)).toEqual([]);
  }
});

test('leaves an old lock to a live process; abort ends the wait', async () => {
  const { context, folder, plant, phases } = setUp();
  plant(JSON.stringify(context.platform.identity), 3_600_000);
  const abort = new AbortController();
  const waiting = acquireLock({ ...context, signal: abort.signal }, folder, 'x');
  await expect.poll(() => phases.length).toBeGreaterThan(2);
  abort.abort();
  await expect(waiting).rejects.toMatchObject({ code: 'aborted' });
  expect(await isLocked(context, folder, 'x')).toBe(true);
});

test('treats locks of another host and unreadable ones as dead after a minute of silence', async () => {
  for (const text of [JSON.stringify({ host: 'elsewhere', pid: 1 }), 'garbage', '']) {
    const { context, folder, plant } = setUp();
    plant(text, 30_000);
    expect(await isLocked(context, folder, 'x')).toBe(true);
    plant(text, 61_000);
    expect(await isLocked(context, folder, 'x')).toBe(false);
    await (await acquireLock(context, folder, 'x')).release();
    expect(readdirSync(folder)).toEqual([]);
  }
});

test('an owner notices that its lock was taken and does not remove the new one', async () => {
  const { context, folder, plant } = setUp();
  const lock = await acquireLock(context, folder, 'x');
  plant('somebody else');
  await expect(lock.requireHeld()).rejects.toMatchObject({ code: 'io' });
  await lock.release();
  expect(readFileSync(join(folder, 'x.lock'), 'utf8')).toBe('somebody else');
});

test('a waiter too slow to remove a dead lock leaves the live one alone', async () => {
  const { context, folder, plant, phases } = setUp();
  plant(JSON.stringify({ ...context.platform.identity, pid: 2 ** 22 + 1 }));
  const live = JSON.stringify({ ...context.platform.identity, nonce: 'faster' });
  const createExclusive = async (path: string, text: string): Promise<boolean> => {
    if (path.endsWith('.break')) plant(live); // The faster waiter acts between our check and our removal.
    return await context.platform.files.createExclusive(path, text);
  };
  const abort = new AbortController();
  const platform = { ...context.platform, files: { ...context.platform.files, createExclusive } };
  const waiting = acquireLock({ ...context, platform, signal: abort.signal }, folder, 'x');
  await expect.poll(() => phases.length).toBeGreaterThan(1);
  abort.abort();
  await expect(waiting).rejects.toMatchObject({ code: 'aborted' });
  expect(readdirSync(folder)).toEqual(['x.lock']);
  expect(readFileSync(join(folder, 'x.lock'), 'utf8')).toBe(live);
});

test('only one process at a time breaks a dead lock, unless the breaker died too', async () => {
  const { context, folder, plant } = setUp();
  const dead = JSON.stringify({ ...context.platform.identity, pid: 2 ** 22 + 1 });
  plant(dead);
  const breaker = join(folder, 'x.lock.break');
  writeFileSync(breaker, dead);
  let numSleeps = 0;
  const sleep = async (): Promise<void> => {
    expect(readFileSync(join(folder, 'x.lock'), 'utf8')).toBe(dead);
    if (++numSleeps === 3) utimesSync(breaker, 0, 0);
  };
  const lock = await acquireLock({ ...context, platform: { ...context.platform, sleep } }, folder, 'x');
  expect(numSleeps).toBe(4);
  await lock.release();
  expect(readdirSync(folder)).toEqual([]);
});
