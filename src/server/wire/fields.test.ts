import { describe, expect, test } from 'vitest';
import { refusalOf } from '../../../test/support/refusal-of.ts';
import {
  booleanField,
  collectIgnored,
  countField,
  fieldsByLimits,
  ignoredFields,
  integerField,
  listField,
  readFields,
  rejectField,
  requiredField,
  schemaOf,
  stringField,
} from './fields.ts';

test('reports the length of a string as a number, not as a quoted value', () => {
  expect(() => stringField(3, 1).read('', 'session')).toThrow("'session' must be a string of 1 to 3 characters, got 0");
  expect(() => stringField(3, 1).read('four', 'session')).toThrow(/ characters, got 4$/);
});

test.each([
  [stringField(3, 1), 'a'],
  [stringField(3, 1), 'abc'],
  [stringField(3), ''],
  [listField(booleanField, 2, 1), [true]],
  [listField(booleanField, 2, 1), [true, false]],
  [listField(booleanField, 2), []],
  [countField(1, 3), 1],
  [countField(1, 3), 3],
])('values at the limits are accepted: %j, %j', (field, value) => {
  expect(field.read(value, 'a')).toEqual(value);
});

test.each([
  [stringField(3), 5, 400, 'a'],
  [listField(booleanField, 2, 1), 'no list', 400, 'a'],
  [listField(booleanField, 2, 1), [], 400, 'a'],
  [listField(booleanField, 2, 1), [true, true, true], 422, 'a'],
  [listField(booleanField, 2, 1), [true, 1], 400, 'a[1]'],
  [countField(1, 3), 0, 400, 'a'],
  [countField(1, 3), 4, 422, 'a'],
  // No count at all, rather than one too many.
  [countField(1, 3), 4.5, 400, 'a'],
  [countField(1, 3), '4', 400, 'a'],
])('others are refused: %j, %j', (field, value, status, param) => {
  expect(refusalOf(() => field.read(value, 'a'))).toMatchObject({ status, param });
});

describe('an object', () => {
  const FIELDS = { name: requiredField(stringField(9)), count: integerField(1, 9), ...ignoredFields('store') };

  test('has null for absent fields, null ones and ignored ones', () => {
    const empty = { count: null, store: null };
    expect(readFields({ name: 'a' }, FIELDS)).toEqual({ ...empty, name: 'a' });
    expect(readFields({ name: 'a', count: null, store: { any: 1 } }, FIELDS)).toEqual({ ...empty, name: 'a' });
    expect(readFields({ name: 'a', count: 2 }, FIELDS)).toEqual({ name: 'a', count: 2, store: null });
  });

  test.each([
    ['text', '', 'body', "'body' must be an object"],
    [[], 'tool', 'tool', "'tool' must be an object"],
    [{}, '', 'name', "'name' is required"],
    [{ name: null }, 'tool', 'tool.name', "'tool.name' is required"],
    [{ count: 0 }, '', 'count', "'count' must be an integer from 1 to 9, got 0"],
    [{ name: 'a', more: 1 }, '', 'more', "unknown field 'more'"],
    [{ name: 'a', more: null }, 'tool', 'tool.more', "unknown field 'tool.more'"],
    [{ name: 'a', [`${'x'.repeat(80)}yz`]: 1 }, '', 'x'.repeat(80), `unknown field '${'x'.repeat(80)}'`],
  ])('%j at %j is refused by name', (value, path, param, message) => {
    const refused = refusalOf(() => readFields(value, FIELDS, { path }));
    expect(refused).toMatchObject({ status: 400, param });
    expect(refused!.message).toContain(message);
  });

  test('lists its required fields in its schema, and allows no others', () => {
    expect(schemaOf({ name: FIELDS.name, count: FIELDS.count })).toEqual({
      type: 'object',
      additionalProperties: false,
      properties: {
        name: { type: 'string', minLength: 0, maxLength: 9 },
        count: { type: 'integer', minimum: 1, maximum: 9 },
      },
      required: ['name'],
    });
  });
});

describe('unknown fields that are ignored', () => {
  test('are named, and left out of the values', () => {
    const { value, names } = collectIgnored(() => readFields({ a: true, b: 1 }, { a: booleanField }, { path: 'x' }));
    expect([value, names]).toEqual([{ a: true }, ['x.b']]);
  });

  test('are named up to 64', () => {
    const body = Object.fromEntries(Array.from({ length: 66 }, (_, index) => [`f${index}`, 1]));
    const { names } = collectIgnored(() => readFields(body, {}));
    expect([names.length, names.at(-1)]).toEqual([64, 'f63']);
  });

  test('are rejected again after the reader, also after one that threw', () => {
    expect(() => collectIgnored(() => rejectField('a'))).toThrow("unknown field 'a'");
    expect(() => readFields({ b: 1 }, {})).toThrow("unknown field 'b'");
  });
});

test('fields by limits are built once for each set of limits', () => {
  const build = fieldsByLimits(({ max }: { max: number }) => ({ count: countField(1, max) }));
  const [few, many] = [{ max: 1 }, { max: 2 }];
  expect(build(few)).toBe(build(few));
  expect(build(many)).not.toBe(build(few));
  expect(readFields({ count: 2 }, build(many))).toEqual({ count: 2 });
});
