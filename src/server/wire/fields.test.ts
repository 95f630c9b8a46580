import { expect, test } from 'vitest';
import { stringField } from './fields.ts';

test('reports the length of a string as a number, not as a quoted value', () => {
  expect(() => stringField(3, 1).read('', 'session')).toThrow("'session' must be a string of 1 to 3 characters, got 0");
  expect(() => stringField(3, 1).read('four', 'session')).toThrow(/ characters, got 4$/);
});
