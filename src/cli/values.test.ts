import { describe, expect, test } from 'vitest';
import {
  readBias,
  readDuration,
  readInteger,
  readLifetime,
  readNumber,
  readSeconds,
  readSize,
  readSwitch,
  readTime,
} from './values.ts';

const refusal = (message: string) =>
  expect.objectContaining({ code: 'invalid_option', message, data: { option: '--x' } });

test('reads numbers in decimal notation', () => {
  const texts = ['0', '-1.5', '+2', '.5', '1.', '1e-3', '2E2'];
  expect(texts.map((text) => readNumber(text, '--x'))).toEqual([0, -1.5, 2, 0.5, 1, 0.001, 200]);
});

test('rejects other numbers, naming flag and value', () => {
  for (const text of ['', ' 1', '1,5', '0x10', 'NaN', 'Infinity', '1e999', '--json', '1 2']) {
    expect(() => readNumber(text, '--x')).toThrow(refusal(`--x must be a number, got ${JSON.stringify(text)}`));
  }
});

test('reads safe integers', () => {
  expect(['0', '-3', '1e3', '9007199254740991'].map((text) => readInteger(text, '--x'))).toEqual([
    0, -3, 1000, 9007199254740991,
  ]);
  for (const text of ['1.5', '9007199254740992', 'many']) {
    expect(() => readInteger(text, '--x')).toThrow(refusal(`--x must be an integer, got "${text}"`));
  }
});

test('reads a logit bias as ID=VALUE', () => {
  expect(readBias('12=-3.5', '--x')).toEqual([12, -3.5]);
  for (const text of ['12', '=1', '-1=2', '1.5=2', '12=']) {
    expect(() => readBias(text, '--x')).toThrow(refusal(`--x must be ID=VALUE, got "${text}"`));
  }
  expect(() => readBias('1=x', '--x')).toThrow(refusal('--x must be a number, got "x"'));
});

test.each([
  ['0', 0],
  ['1000', 1000],
  ['1000B', 1000],
  ['1k', 1024],
  ['1.5G', 1.5 * 2 ** 30],
  ['512MiB', 512 * 2 ** 20],
  ['512 mb', 512 * 2 ** 20],
  ['.5gib', 2 ** 29],
  ['2T', 2 ** 41],
  ['0.3K', 307],
  ['9007199254740991', 9007199254740991],
])('the size %s is %d bytes', (text, bytes) => {
  expect(readSize(text, '--x')).toBe(bytes);
});

test('rejects an invalid size, naming flag and value', () => {
  const texts = [
    '',
    'many',
    '1.5',
    '-1',
    '1e9',
    '1 G B',
    '1GG',
    '1ib',
    '2P',
    '9007199254740992',
    '9000T',
    '0x10',
    '1,5G',
  ];
  for (const text of texts) {
    const message = `--x must be a size such as 512MiB, 2G or 1.5GiB, got ${JSON.stringify(text)}`;
    expect(() => readSize(text, '--x')).toThrow(refusal(message));
  }
});

test('converts seconds to milliseconds', () => {
  expect(['0.001', '1', '1.5', '2147483'].map((text) => readSeconds(text, '--x'))).toEqual([1, 1000, 1500, 2147483000]);
  for (const text of ['0', '-1', '0.0001', '2147484']) {
    expect(() => readSeconds(text, '--x')).toThrow(
      refusal(`--x must be a number of seconds from 0.001 to 2147483, got ${text}`),
    );
  }
});

test('reads lifetimes longer than a timer can wait', () => {
  expect(readLifetime('31536000', '--x')).toBe(31_536_000_000);
  expect(() => readLifetime('3153600001', '--x')).toThrow(
    refusal('--x must be a number of seconds from 0.001 to 3153600000, got 3153600001'),
  );
});

test('reads a switch as on or off', () => {
  expect([readSwitch('on', '--x'), readSwitch('off', '--x')]).toEqual([true, false]);
  for (const text of ['', '1', 'true', 'ON']) {
    expect(() => readSwitch(text, '--x')).toThrow(refusal(`--x must be on or off, got ${JSON.stringify(text)}`));
  }
});

describe('times', () => {
  test('reads dates as UTC, and durations as time before now', () => {
    expect(readTime('2026-11-15', '--from')).toBe(Date.UTC(2026, 10, 15));
    expect(readTime('2026-11-15T10:00Z', '--from')).toBe(Date.UTC(2026, 10, 15, 10));
    expect(readTime('2026-11-15T10:00+02:00', '--from')).toBe(Date.UTC(2026, 10, 15, 8));
    const before = Date.now();
    const weekAgo = readTime('1w', '--from');
    expect(weekAgo).toBeGreaterThanOrEqual(before - 7 * 86_400_000);
    expect(weekAgo).toBeLessThanOrEqual(Date.now() - 7 * 86_400_000);
  });

  test.each(['', 'soon', '2026-13-01', '2026-11-15T10:00', '7', '-1d', '1999999w', '15.11.2026'])(
    'rejects %j',
    (text) => {
      expect(() => readTime(text, '--from')).toThrow(/^--from must be a time such as 2026-11-15/);
    },
  );
});

describe('durations', () => {
  test('reads minutes, hours, days and weeks', () => {
    const ms = ['30m', '12h', '7d', '2w', '36500d'].map((text) => readDuration(text, '--for'));
    expect(ms).toEqual([1_800_000, 43_200_000, 604_800_000, 1_209_600_000, 36_500 * 86_400_000]);
  });

  test.each(['', '7', '0d', '-1d', '1.5h', '36501d', '7 d', '1y', '1s'])('rejects %j with the bounds', (text) => {
    expect(() => readDuration(text, '--for')).toThrow(
      `--for must be from 1m to 36500d, such as 12h, 7d or 2w, got ${JSON.stringify(text)}`,
    );
  });
});
