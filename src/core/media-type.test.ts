import { expect, test } from 'vitest';
import { parseMediaType } from './media-type.ts';

test.each([
  ['application/json', 'application/json', {}],
  ['Text/HTML; Charset=UTF-8', 'text/html', { charset: 'UTF-8' }],
  ['  text/html ; charset = x ;charset=utf-8', 'text/html', { charset: 'x' }],
  ['text/plain;charset="utf-8"', 'text/plain', { charset: 'utf-8' }],
  ['text/plain; a="x; charset=latin1\\""; charset=utf-8', 'text/plain', { a: 'x; charset=latin1"', charset: 'utf-8' }],
  ['text/plain; charset=a; charset=b; flag; =x; empty=', 'text/plain', { charset: 'a' }],
  ['multipart/form-data; boundary=----x=y', 'multipart/form-data', { boundary: '----x=y' }],
  ['text/plain; a="unclosed', 'text/plain', { a: 'unclosed' }],
  ['application/problem+json', 'application/problem+json', {}],
])('%s is %s', (text, type, parameters) => {
  const read = parseMediaType(text)!;
  expect([read.type, Object.fromEntries(read.parameters)]).toEqual([type, parameters]);
});

test.each([
  null,
  undefined,
  '',
  'json',
  '/json',
  'application/',
  'application/json, text/plain',
  'a b/c',
  'a/b/c',
  ';',
])('%s is none', (text) => expect(parseMediaType(text)).toBeNull());

test('reads a long header in linear time', () => {
  const text = `text/plain;${'a="'.repeat(100_000)}`;
  expect(parseMediaType(text)!.type).toBe('text/plain');
});
