import { expect, test } from 'vitest';
import { scheduleBackups } from './scheduled-backups.ts';

const HOUR = 3_600_000;
const REPORT = { path: 'p', createdMs: 0, numRecords: 1, sizeBytes: 1 };

function start(newestMs: number | null, write: () => Promise<typeof REPORT>) {
  let nowMs = 100 * HOUR;
  let timer: { task: () => void; delayMs: number } | null = null;
  const backups = scheduleBackups({
    everyMs: 6 * HOUR,
    write,
    newestMs,
    now: () => nowMs,
    setTimer(task, delayMs) {
      timer = { task, delayMs };
      return () => (timer = null);
    },
    report() {},
  });
  return {
    ...backups,
    delayMs: () => timer?.delayMs ?? null,
    async tick() {
      const { task, delayMs } = timer!;
      nowMs += delayMs;
      task();
      await new Promise(setImmediate);
    },
  };
}

test('[MS38] the first backup is due at once without one, otherwise when the interval since the newest has passed', async () => {
  const write = () => Promise.resolve(REPORT);
  expect(start(null, write).delayMs()).toBe(0);
  const later = start(98 * HOUR, write);
  expect(later.delayMs()).toBe(4 * HOUR);
  await later.tick();
  expect(later.delayMs()).toBe(6 * HOUR);
  later.stop();
  expect(later.delayMs()).toBeNull();
});

test('[MS38] a failed backup is a problem until one succeeds, and is tried again soon', async () => {
  let isBroken = true;
  const backups = start(null, () => (isBroken ? Promise.reject(new Error('disk full')) : Promise.resolve(REPORT)));
  await backups.tick();
  expect([backups.problem(), backups.delayMs()]).toEqual(['disk full', 600_000]);
  isBroken = false;
  await backups.tick();
  expect([backups.problem(), backups.delayMs()]).toEqual([null, 6 * HOUR]);
});
