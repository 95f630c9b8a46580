// Fields that several formats share.
import { describe, expect, test } from 'vitest';
import { refusalOf } from '../../../test/support/refusal-of.ts';
import type { GenerateOptions } from '../../runtime/generate-options.ts';
import { toChatOptions } from './chat-fields.ts';
import { imageUrlField, joinContent } from './image-parts.ts';
import { REFLECTION_FIELDS, toReflection } from './reflection-field.ts';
import { oneSpelling } from './spellings.ts';
import { maxTokensField, tokenLimitOf } from './token-limit.ts';
import { unsupportedField } from './unsupported.ts';

describe('reasoning', () => {
  const read = (effort: GenerateOptions['reasoning'] | null, isOn?: boolean | null) =>
    toChatOptions({
      chat_template_kwargs: null,
      reasoning_effort: effort,
      ...(isOn === undefined ? {} : { enable_thinking: isOn }),
    });

  test.each([
    [null, null, {}],
    [null, undefined, {}],
    [null, true, { reasoning: 'on' }],
    [null, false, { reasoning: 'none' }],
    ['high', null, { reasoning: 'high' }],
    ['high', true, { reasoning: 'high' }],
    ['none', undefined, { reasoning: 'none' }],
    ['none', false, { reasoning: 'none' }],
  ] as const)('effort %j, thinking %j', (effort, isOn, options) => {
    expect(read(effort, isOn)).toEqual(options);
  });

  test.each([
    ['high', false],
    ['none', true],
  ] as const)('effort %j contradicts thinking %j', (effort, isOn) => {
    expect(refusalOf(() => read(effort, isOn))).toMatchObject({ status: 400, param: 'enable_thinking' });
  });

  test('variables of the template are passed on', () => {
    const variables = { a: 1 };
    expect(toChatOptions({ chat_template_kwargs: variables, reasoning_effort: null })).toEqual({
      templateVariables: variables,
    });
  });
});

describe('reflection', () => {
  const read = (value: unknown) => REFLECTION_FIELDS.reflection.read(value, 'reflection');

  test.each([
    [true, true],
    [false, false],
    [{}, {}],
    [{ max_retries: 1 }, { maxRetries: 1 }],
    [{ max_retries: 3 }, { maxRetries: 3 }],
    [{ min_gain: 0.5 }, { minGain: 0.5 }],
    [{ min_confidence: 0 }, { minConfidence: 0 }],
    [
      { max_retries: 2, min_gain: 1, min_confidence: 1 },
      { maxRetries: 2, minGain: 1, minConfidence: 1 },
    ],
  ])('%j is read', (value, option) => {
    expect(read(value)).toEqual(option);
    expect(toReflection({ reflection: read(value) })).toEqual({ reflection: option });
  });

  test('is not set if it is absent', () => {
    expect(toReflection({ reflection: null })).toEqual({});
  });

  test.each([
    ['yes', 'reflection'],
    [{ max_retries: 0 }, 'reflection.max_retries'],
    [{ max_retries: 4 }, 'reflection.max_retries'],
    [{ min_gain: 1.1 }, 'reflection.min_gain'],
  ])('%j is refused', (value, param) => {
    expect(refusalOf(() => read(value))).toMatchObject({ status: 400, param });
  });
});

describe('a limit of tokens', () => {
  test.each([-1, 1, 2 ** 53])('%d is accepted', (value) => {
    expect(maxTokensField.read(value, 'max_tokens')).toBe(value);
  });

  test.each([0, -2, 1.5, '5', Infinity])('%j is refused', (value) => {
    expect(refusalOf(() => maxTokensField.read(value, 'max_tokens'))).toMatchObject({
      status: 400,
      param: 'max_tokens',
    });
  });

  test.each([
    [{ a: null, b: null }, null],
    [
      { a: null, b: 5 },
      { name: 'b', maxTokens: 5 },
    ],
    [
      { a: -1, b: null },
      { name: 'a', maxTokens: null },
    ],
    [
      { a: 2147483647, b: null },
      { name: 'a', maxTokens: 2147483647 },
    ],
    [
      { a: 2147483648, b: null },
      { name: 'a', maxTokens: 2147483647 },
    ],
  ])('of %j', (fields, limit) => {
    expect(tokenLimitOf(fields, 'a', 'b')).toEqual(limit);
  });
});

describe('one setting under several names', () => {
  test.each([
    [{ a: null, b: null }, null],
    [
      { a: 1, b: 1 },
      { name: 'a', value: 1 },
    ],
    [
      { a: null, b: false },
      { name: 'b', value: false },
    ],
    [
      { a: { x: 1 }, b: { x: 1 } },
      { name: 'a', value: { x: 1 } },
    ],
  ])('%j', (fields, spelling) => {
    expect(oneSpelling(fields, 'a', 'b')).toEqual(spelling);
  });

  test.each([[{ a: 1, b: 2 }], [{ a: { x: 1 }, b: { x: 2 } }], [{ a: 0, b: false }]])('%j is refused', (fields) => {
    expect(refusalOf(() => oneSpelling(fields, 'a', 'b'))).toMatchObject({ status: 400, param: 'b' });
  });
});

describe('a field of an unsupported feature', () => {
  const { read } = unsupportedField('audio');

  test.each([[false], [[]]])('%j asks for nothing', (value) => {
    expect(read(value, 'audio')).toBeNull();
  });

  test.each([[true], [0], [''], [{}], [[1]], [{ length: 0 }]])('%j is refused', (value) => {
    expect(refusalOf(() => read(value, 'audio'))).toEqual({
      status: 400,
      code: 'unsupported',
      param: 'audio',
      message: "'audio': audio is not supported by this version",
    });
  });
});

test('an image is a data URL, or an object with one', () => {
  const url = 'data:image/png;base64,aGk=';
  const hi = Uint8Array.of(0x68, 0x69);
  expect(imageUrlField.read(url, 'image_url')).toEqual(hi);
  expect(imageUrlField.read({ url, detail: 'low' }, 'image_url')).toEqual(hi);
  expect(refusalOf(() => imageUrlField.read('', 'image_url'))).toMatchObject({ param: 'image_url' });
  expect(refusalOf(() => imageUrlField.read({}, 'image_url'))).toMatchObject({ param: 'image_url.url' });
});

test('parts are joined, and images are placed before the character that follows them', () => {
  const image = Uint8Array.of(1);
  expect(joinContent([image, 'ab', image, 'c'])).toEqual({
    text: 'abc',
    images: [
      { offset: 0, data: image },
      { offset: 2, data: image },
    ],
  });
});
