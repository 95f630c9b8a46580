import { expect, test } from 'vitest';
import { createFakeIo } from '../../test/support/cli-io.ts';
import { createProgress } from './progress.ts';

const step = (doneBytes: number, totalBytes: number | null = 1000 * 1024, label = 'downloading m') => ({
  label,
  doneBytes,
  totalBytes,
});

test('without a terminal: a line at most every five seconds, with speed and time left', () => {
  const io = createFakeIo();
  const progress = createProgress({ sink: io.stderr, now: io.now });
  for (let second = 0; second <= 12; second++) {
    io.nowMs = second * 1000;
    progress.update(step(second * 50 * 1024));
  }
  progress.finish();
  expect(io.written.stderr.split('\n')).toEqual([
    'downloading m  ██████░░░░░░░░░░░░░░░░░░ 25%  250 KiB / 1000 KiB  50.0 KiB/s  15 s left',
    'downloading m  ████████████░░░░░░░░░░░░ 50%  500 KiB / 1000 KiB  50.0 KiB/s  10 s left',
    '',
  ]);
});

test('bytes that were there before the first step do not count as speed', () => {
  const io = createFakeIo();
  const progress = createProgress({ sink: io.stderr, now: io.now });
  progress.update(step(800 * 1024));
  io.nowMs = 5000;
  progress.update(step(850 * 1024));
  expect(io.written.stderr).toContain('10.0 KiB/s  15 s left');
});

test('the speed is that of the last ten seconds, not of a better time before', () => {
  const io = createFakeIo();
  const progress = createProgress({ sink: io.stderr, now: io.now });
  for (let second = 0; second <= 30; second++) {
    io.nowMs = second * 1000;
    progress.update(step(second <= 10 ? second * 50 * 1024 : (500 + second - 10) * 1024));
  }
  expect(io.written.stderr.trimEnd().split('\n').at(-1)).toMatch(
    /520 KiB \/ 1000 KiB {2}1\.0 KiB\/s {2}8 min 00 s left$/,
  );
});

test('on a terminal: one line drawn over itself, taken away at the end, never wider than the screen', () => {
  const io = createFakeIo({ isTerminal: true });
  const progress = createProgress({ sink: io.stderr, now: io.now });
  progress.update(step(0, null, `loading ${'x'.repeat(200)}\x1b[2J`));
  progress.update(step(1, null, `loading ${'x'.repeat(200)}\x1b[2J`)); // too soon to draw again
  expect(io.written.stderr).toBe(`\r\x1b[K${`loading ${'x'.repeat(200)}`.slice(0, 78)}…`);
  progress.finish();
  progress.finish();
  expect(io.written.stderr.endsWith('\r\x1b[K')).toBe(true);
  expect(io.written.stderr.split('\r\x1b[K')).toHaveLength(3);
});

test('on a terminal a long label gives way to the numbers', () => {
  const io = createFakeIo({ isTerminal: true });
  createProgress({ sink: io.stderr, now: io.now }).update(
    step(512_000, 1_024_000, 'loading a-model-with-a-long-name.gguf'),
  );
  const line = io.written.stderr.slice('\r\x1b[K'.length);
  expect(line).toBe('loading a-model-with-a-long-…  ████████████░░░░░░░░░░░░ 50%  500 KiB / 1000 KiB');
  expect(line).toHaveLength(79);
});

test('a size that is not known gives no share and no time left', () => {
  const io = createFakeIo();
  const progress = createProgress({ sink: io.stderr, now: io.now });
  progress.update(step(0, null));
  io.nowMs = 5000;
  progress.update(step(51200, null));
  expect(io.written.stderr).toBe('downloading m  50.0 KiB  10.0 KiB/s\n');
});
