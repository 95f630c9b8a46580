import { expect, test } from 'vitest';
import { hasColour, paint } from './colour.ts';

test.each([
  [true, {}, true],
  [false, {}, false],
  [true, { NO_COLOR: '1' }, false],
  [true, { NO_COLOR: '' }, true],
  [true, { TERM: 'dumb' }, false],
  [false, { FORCE_COLOR: '1' }, true],
  [false, { FORCE_COLOR: '' }, false],
  [true, { FORCE_COLOR: '0' }, false],
  [true, { FORCE_COLOR: '1', NO_COLOR: '1' }, true],
])('terminal %j with %j: colour %j', (isTerminal, environment, expected) => {
  expect(hasColour({ environment }, { isTerminal })).toBe(expected);
});

test('colours every line separately', () => {
  expect(paint('a\n\nb', 'bold', true)).toBe('\x1b[1ma\x1b[22m\n\n\x1b[1mb\x1b[22m');
  expect(paint('a', 'red', false)).toBe('a');
});
