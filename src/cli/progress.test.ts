import { expect, test } from 'vitest';
import { createFakeIo } from '../../test/support/cli-io.ts';
import { createProgress } from './progress.ts';

const step = (doneBytes: number, totalBytes: number | null = 1000 * 1024, label = 'downloading m') => ({
  label,
  doneBytes,
  totalBytes,
});

test('prints a line at most every five seconds without a terminal', () => {
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

test('excludes bytes from before the first step from the speed', () => {
  const io = createFakeIo();
  const progress = createProgress({ sink: io.stderr, now: io.now });
  progress.update(step(800 * 1024));
  io.nowMs = 5000;
  progress.update(step(850 * 1024));
  expect(io.written.stderr).toContain('10.0 KiB/s  15 s left');
});

test('shows the speed of the last ten seconds', () => {
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

test('redraws one line within the width of the terminal and clears it at the end', () => {
  const io = createFakeIo({ isTerminal: true });
  const progress = createProgress({ sink: io.stderr, now: io.now });
  progress.update(step(0, null, `loading ${'x'.repeat(200)}\x1b[2J`));
  progress.update(step(1, null, `loading ${'x'.repeat(200)}\x1b[2J`)); // too soon to redraw
  expect(io.written.stderr).toBe(`\r\x1b[K${`loading ${'x'.repeat(200)}`.slice(0, 78)}…`);
  progress.finish();
  progress.finish();
  expect(io.written.stderr.endsWith('\r\x1b[K')).toBe(true);
  expect(io.written.stderr.split('\r\x1b[K')).toHaveLength(3);
});

test('shortens a long label rather than the numbers', () => {
  const io = createFakeIo({ isTerminal: true });
  createProgress({ sink: io.stderr, now: io.now }).update(
    step(512_000, 1_024_000, 'loading a-model-with-a-long-name.gguf'),
  );
  const line = io.written.stderr.slice('\r\x1b[K'.length);
  expect(line).toBe('loading a-model-with-a-long-…  ████████████░░░░░░░░░░░░ 50%  500 KiB / 1000 KiB');
  expect(line).toHaveLength(79);
});

test('shows no percentage and no time left for an unknown size', () => {
  const io = createFakeIo();
  const progress = createProgress({ sink: io.stderr, now: io.now });
  progress.update(step(0, null));
  io.nowMs = 5000;
  progress.update(step(51200, null));
  expect(io.written.stderr).toBe('downloading m  50.0 KiB  10.0 KiB/s\n');
});
