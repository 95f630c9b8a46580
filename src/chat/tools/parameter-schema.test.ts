import { describe, expect, test } from 'vitest';
import {
  createInput,
  isSpace,
  more,
  readUntil,
  skip,
  skipOneOf,
  skipSpaces,
  type Input,
  type Reader,
} from './input.ts';
import { asString, isJsonObject, parseJson, readJson } from './json-reader.ts';
import { argumentsSchema, isRawString, propertiesOf } from './grammar.ts';
import { checkParameterList, checkReferences, pointerTo, readTextRule, resolveRoot } from './parameter-schema.ts';
import { toJsonValue } from './parameter-calls.ts';
import { pythonToJson } from './python-literal.ts';

type Schema = Readonly<Record<string, unknown>>;

describe('references at the root of a schema', () => {
  const $defs = {
    a: { type: 'object', title: 'A' },
    b: { $ref: '#/$defs/a' },
    'x/y~z': { const: 1 },
    own: { $id: 'u' },
  };

  test.each<[what: string, schema: Schema, resolved: Schema | null]>([
    ['none', { type: 'object' }, { type: 'object' }],
    ['one', { $ref: '#/$defs/a', $defs }, { type: 'object', title: 'A', $defs }],
    ['two in a row', { $ref: '#/$defs/b', $defs }, { type: 'object', title: 'A', $defs }],
    ['an escaped name', { $ref: '#/$defs/x~1y~0z', $defs }, { const: 1, $defs }],
    [
      'beside a note',
      { $ref: '#/$defs/a', $defs, description: 'd', type: 'object' },
      { type: 'object', title: 'A', $defs },
    ],
    ['beside a restriction', { $ref: '#/$defs/a', $defs, required: ['q'] }, null],
    ['to nothing', { $ref: '#/$defs/q', $defs }, null],
    ['to a text', { $ref: '#/$defs/a/title', $defs }, null],
    ['to an inherited name', { $ref: '#/$defs/toString', $defs }, null],
    ['to another document', { $ref: 'http://h/#/$defs/a', $defs }, null],
    ['with an escape of addresses', { $ref: '#/$defs/%61', $defs }, null],
    ['to a schema with an identifier', { $ref: '#/$defs/own', $defs }, null],
    ['that is no text', { $ref: 5, $defs }, null],
    ['to itself', { $ref: '#/$defs/c', $defs: { c: { $ref: '#/$defs/c' } } }, null],
  ])('%s', (_, schema, resolved) => {
    expect(resolveRoot(schema)).toEqual(resolved);
  });

  test('16 in a row are followed', () => {
    const chain = (length: number): Schema => ({
      $ref: '#/$defs/d1',
      $defs: Object.fromEntries(
        Array.from({ length }, (_, i) => [
          `d${i + 1}`,
          i + 1 === length ? { const: 1 } : { $ref: `#/$defs/d${i + 2}` },
        ]),
      ),
    });
    expect([resolveRoot(chain(16))?.['const'], resolveRoot(chain(17))]).toEqual([1, null]);
  });

  test('a part of a schema refers to definitions only', () => {
    const check = (schema: unknown) => (): void => checkReferences('t', '/p', schema);
    expect(check({ items: [{ $ref: '#/$defs/a' }, null, 5, { $ref: '#/definitions/b' }, { $ref: 7 }] })).not.toThrow();
    expect(check({ items: [{ deep: { $ref: '#/properties/a' } }] })).toThrow('tool "t": $ref at /p: #/properties/a is not among the definitions'); // prettier-ignore
    expect(pointerTo('a/b~c')).toBe('/properties/a~1b~0c');
  });
});

describe('arguments that are written one by one', () => {
  const properties = { a: {}, b: false };
  const check = (schema: Schema | null) => (): void => checkParameterList('t', schema);

  test.each<[schema: Schema, refusal: string | null]>([
    [{}, null],
    [{ properties, required: ['a'] }, null],
    [{ properties, required: ['b'] }, 'required at the root: "b" is not among the properties'],
    [{ properties, required: ['c'] }, 'required at the root: "c" is not among the properties'],
    [{ properties, required: ['toString'] }, '"toString" is not among the properties'],
    [{ properties, required: [5] }, 'required at the root: 5 is not among the properties'],
    [{ properties: 5, required: ['a'] }, '"a" is not among the properties'],
    [{ properties, required: 'a' }, null],
    [{ anyOf: [{}] }, "anyOf at the root: the model's tool-call format writes arguments one by one"],
    [{ patternProperties: {} }, null],
    [{ patternProperties: { x: {} } }, 'patternProperties at the root'],
    [{ not: {} }, 'not at the root'],
    [{ if: {} }, 'if at the root'],
    [{ const: null }, 'const at the root'],
    [{ properties, required: ['a'], minProperties: 1 }, null],
    [
      { properties, required: ['a'], minProperties: 2 },
      'minProperties at the root: 2 is more than the 1 required properties',
    ],
    [{ properties, maxProperties: 2 }, null],
    [{ properties, maxProperties: 1 }, 'maxProperties at the root: 1 is less than the 2 properties'],
    [{ minProperties: 'x' }, 'minProperties at the root: "x" is more than'],
    [{ minProperties: { toString: 1, valueOf: 1 } }, 'minProperties at the root: an object'],
    [{ maxProperties: 'x' }, 'maxProperties at the root: "x" is less than'],
  ])('%j', (schema, refusal) => {
    if (refusal === null) expect(check(schema)).not.toThrow();
    else expect(check(schema)).toThrow(expect.objectContaining({ code: 'unsupported', message: expect.stringContaining(refusal) })); // prettier-ignore
  });

  test('an unresolvable reference is refused', () => {
    expect(check(null)).toThrow('$ref at the root: only local references without sibling keywords are supported');
  });

  test.each<[schema: Schema, values: string[] | null, minLength: number, maxLength: number]>([
    [{}, null, 0, Infinity],
    [{ minLength: 2, maxLength: 2 }, null, 2, 2],
    [{ enum: ['a', 'bb', 5, '😀😀', 'ccc'], minLength: 1, maxLength: 2 }, ['a', 'bb', '😀😀'], 1, 2],
    [{ enum: ['a', 'bb'], minLength: 2 }, ['bb'], 2, Infinity],
    [{ const: 'a' }, ['a'], 0, Infinity],
    [{ const: undefined }, [], 0, Infinity],
    [{ enum: ['a', 'b'], const: 'b' }, ['b'], 0, Infinity],
    [{ enum: ['a'], const: 'b' }, [], 0, Infinity],
  ])('a text of %j', (schema, values, minLength, maxLength) => {
    expect(readTextRule('t', '/p', schema)).toEqual({ values, minLength, maxLength });
  });

  test.each<[schema: Schema, refusal: string]>([
    [{ pattern: 'a' }, "pattern at /p: the model's tool-call format writes strings without quotes"],
    [{ minLength: -1 }, 'minLength at /p: must be a non-negative integer'],
    [{ maxLength: 1.5 }, 'maxLength at /p: must be a non-negative integer'],
    [{ minLength: '1' }, 'minLength at /p: must be a non-negative integer'],
    [{ minLength: 3, maxLength: 2 }, 'maxLength at /p: 2 is less than minLength 3'],
  ])('a text of %j is refused', (schema, refusal) => {
    expect(() => readTextRule('t', '/p', schema)).toThrow(refusal);
  });

  test('a parameter is raw text if its schema allows only strings', () => {
    const raw: unknown[] = [{ type: 'string' }, { enum: ['a', 'b'] }, { type: 'string', enum: [1] }];
    const others: unknown[] = [null, 'string', undefined, {}, { type: ['string'] }, { enum: [] }, { enum: ['a', 1] }, { type: 'number', enum: ['a'] }, { enum: 'a' }]; // prettier-ignore
    expect([raw.map(isRawString), others.map(isRawString)]).toEqual([raw.map(() => true), others.map(() => false)]);
  });

  test('the arguments of a tool are an object', () => {
    const schemaOf = (parameters?: Schema) => argumentsSchema({ name: 't', ...(parameters && { parameters }) });
    const none = { type: 'object', properties: {}, additionalProperties: false };
    expect([schemaOf(), schemaOf({}), schemaOf({ title: 'x' }), schemaOf({ type: 'array' })]).toEqual([none, none, { type: 'object', title: 'x' }, { type: 'array' }]); // prettier-ignore
    const names = (parameters?: Schema) => [...propertiesOf({ name: 't', ...(parameters && { parameters }) }).keys()];
    expect([names(), names({ properties: null }), names({ properties: 5 }), names({ properties: { a: 1 } }), names({ $ref: 'x' })]).toEqual([[], [], [], ['a'], []]); // prettier-ignore
  });
});

test('an unquoted value becomes JSON by its schema', () => {
  const string = { type: 'string' };
  expect(toJsonValue('5', string, undefined)).toBe('"5"');
  expect(toJsonValue('5', string, false)).toBe('5');
  expect(toJsonValue('5', {}, true)).toBe('"5"');
  expect([' 5 ', '[1]', 'null', 'True', "{'a': None}", 'text', '"q"', ''].map((text) => toJsonValue(text, {}, undefined))).toEqual(['5', '[1]', 'null', 'true', '{"a": null}', '"text"', '"q"', '""']); // prettier-ignore
});

test('literals of Python become JSON', () => {
  const cases: [string, string | null][] = [
    ['None', 'null'],
    ['True', 'true'],
    ['False', 'false'],
    ['null', 'null'],
    ['true', 'true'],
    ['false', 'false'],
    ['{\'a\': [1, 2.5e3, -1], "b": (True, None)}', '{"a": [1, 2.5e3, -1], "b": [true, null]}'],
    ["'it\\'s \\n \\x41 \\u00e9 \\\\ \"q\"'", JSON.stringify('it\'s \n A é \\ "q"')],
    ['\n[1,\n2]\n', '[1, 2]'],
    ['none', null],
    ['[1', null],
    ["'a", null],
    ['a b', null],
    ['', null],
    ['1 2', null],
    ['#', null],
  ];
  for (const [text, json] of cases) expect([text, pythonToJson(text)]).toEqual([text, json]);
});

/** Runs a reader over text that arrives in pieces, then ends. */
function run<T>(
  pieces: string[],
  create: (input: Input) => Reader<T>,
  limit = Infinity,
): { value: T | 'waits'; input: Input } {
  const input = createInput();
  input.limit = limit;
  const reader = create(input);
  for (const piece of pieces) {
    input.text += piece;
    const { done, value } = reader.next();
    if (done === true) return { value, input };
  }
  input.isEnded = true;
  const { done, value } = reader.next();
  return { value: done === true ? value : 'waits', input };
}

describe('reading text that arrives in pieces', () => {
  const brief = <T>(...args: Parameters<typeof run<T>>) => {
    const { value, input } = run<T>(...args);
    return [value, input.position, input.isCutOff, input.isOverLimit];
  };

  test('more: waits for a character, up to the limit', () => {
    expect([brief(['a'], more), brief(['', 'a'], more), brief([''], more)]).toEqual([[true, 0, false, false], [true, 0, false, false], [false, 0, true, false]]); // prettier-ignore
    const second = (input: Input) => (input.position++, more(input));
    expect([brief(['ab'], second, 1), brief(['ab'], second, 2), brief(['a'], second, 1)]).toEqual([[false, 1, false, true], [true, 1, false, false], [false, 1, false, true]]); // prettier-ignore
  });

  test('skip: a literal, whole or in pieces', () => {
    const skipAb = (input: Input) => skip(input, 'ab');
    expect(['ab', 'abc', 'b', 'ac', 'a', ''].map((text) => brief([text], skipAb))).toEqual([[true, 2, false, false], [true, 2, false, false], [false, 0, false, false], [false, 0, false, false], [false, 0, true, false], [false, 0, true, false]]); // prettier-ignore
    expect([brief(['a', 'b'], skipAb), brief(['a', 'c'], skipAb)]).toEqual([[true, 2, false, false], [false, 0, false, false]]); // prettier-ignore
    const skipSome = (input: Input) => skipOneOf(input, ['ab', 'ac']);
    expect([brief(['a', 'c'], skipSome), brief(['b'], skipSome)]).toEqual([['ac', 2, false, false], [null, 0, false, false]]); // prettier-ignore
    expect([...' \n\r\t\u00a0a'].map(isSpace)).toEqual([true, true, true, true, false, false]);
    expect([brief([' \n', '\t a'], (input) => skipSpaces(input, 9)), brief(['    a'], (input) => skipSpaces(input, 2))]).toEqual([[undefined, 4, false, false], [undefined, 2, false, false]]); // prettier-ignore
  });

  test('readUntil: the nearest stop within the limit, also cut in two', () => {
    const until = (stops: string[], maxChars: number) => (input: Input) => readUntil(input, stops, maxChars);
    const end = (text: string, stop: string) => ({ text, stop });
    expect(brief(['ab|c>'], until(['>', '|'], 9))).toEqual([end('ab', '|'), 3, false, false]);
    expect(brief(['ab<', '/x>c'], until(['</x>'], 9))).toEqual([end('ab', '</x>'), 6, false, false]);
    expect(brief(['ab</x', '>c'], until(['</x>', '!'], 9))).toEqual([end('ab', '</x>'), 6, false, false]);
    expect(brief(['abc>'], until(['>'], 3))).toEqual([end('abc', '>'), 4, false, false]);
    expect(brief(['abcd>'], until(['>'], 3))).toEqual([null, 0, false, false]);
    expect(brief(['abcd', '>'], until(['>'], 3))).toEqual([null, 0, false, false]);
    expect(brief(['abc', '>'], until(['>'], 3))).toEqual([end('abc', '>'), 4, false, false]);
    expect(brief(['abc'], until(['>'], 9))).toEqual([null, 0, true, false]);
    expect(brief(['abcdef>'], until(['>'], 9), 3)).toEqual([null, 0, false, true]);
    expect(brief(['abc>'], until(['>'], 9), 3)).toEqual([end('abc', '>'), 4, false, false]);
  });

  test('readJson: one value, no longer than allowed', () => {
    const json = (maxChars: number) => (input: Input) => readJson(input, maxChars);
    expect(brief(['{"a"', ': 1}x'], json(9))).toEqual(['{"a": 1}', 8, false, false]);
    expect(brief(['12,'], json(9))).toEqual(['12', 2, false, false]);
    expect(brief(['[1]'], json(3))).toEqual(['[1]', 3, false, false]);
    expect(brief(['[1]'], json(2))[0]).toBeNull();
    expect([brief(['[1'], json(9)).slice(0, 3), brief(['[}'], json(9))[0]]).toEqual([[null, 2, true], null]);
  });

  test('strings, objects and texts that are no JSON', () => {
    expect([asString('"a"'), asString('1'), asString('x')]).toEqual(['a', null, null]);
    expect(['{}', '[]', 'null', '1', 'x'].map(isJsonObject)).toEqual([true, false, false, false, false]);
    expect([parseJson('1'), parseJson('x')]).toEqual([1, undefined]);
  });
});
