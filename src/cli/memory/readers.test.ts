import { describe, expect, test } from 'vitest';
import { readCondition, readObject, readTime } from './readers.ts';

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

describe('conditions', () => {
  test.each([
    ['topic=cards', { field: 'topic', is: '=', value: 'cards' }],
    ['topic=3', { field: 'topic', is: '=', value: '3' }],
    ['topic=a=b', { field: 'topic', is: '=', value: 'a=b' }],
    ['topic!=', { field: 'topic', is: '!=', value: '' }],
    ['quality>=0.5', { field: 'quality', is: '>=', value: 0.5 }],
    ['totalMs<1e3', { field: 'totalMs', is: '<', value: 1000 }],
    ['hasError=true', { field: 'hasError', is: '=', value: true }],
    ['colour=red', { field: 'colour', is: '=', value: 'red' }],
  ])('reads %s', (text, condition) => expect(readCondition(text, '--where')).toEqual(condition));

  test.each(['', 'topic', '=x', 'quality>=high'])('rejects %j', (text) => {
    expect(() => readCondition(text, '--where')).toThrow(/^--where/);
  });
});

test('reads only JSON objects', () => {
  expect(readObject('{"a":1}', '--metadata')).toEqual({ a: 1 });
  for (const text of ['[]', '1', 'null', '{', ''])
    expect(() => readObject(text, '--metadata')).toThrow('a JSON object');
});
