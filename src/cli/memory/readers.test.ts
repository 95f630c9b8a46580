import { describe, expect, test } from 'vitest';
import { readCondition, readObject } from './readers.ts';

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
