import { expect, test } from 'vitest';
import { type GenerateOptions, resolveGenerateOptions } from './generate-options.ts';

test('defaults: the local tenant, known prefixes, no hurry and no limit', () => {
  expect(resolveGenerateOptions()).toMatchObject({
    signal: null,
    parseSpecial: false,
    cachePrefix: true,
    tenant: 'local',
    priority: 0,
    timeoutMs: null,
    session: null,
    clampMaxTokens: true,
  });
});

test('what was given is taken', () => {
  const given: GenerateOptions = { cachePrefix: false, tenant: 'é'.repeat(128), priority: -10, timeoutMs: 0.5e3 };
  expect(resolveGenerateOptions({ ...given, session: 's' })).toMatchObject({ ...given, session: 's' });
  expect(resolveGenerateOptions({ priority: 10, timeoutMs: 2 ** 31 - 1 })).toMatchObject({ priority: 10 });
});

test.each([
  [{ cachePrefix: 1 }, 'true or false'],
  [{ tenant: '' }, '1 to 256 bytes, got 0 bytes'],
  [{ tenant: 'é'.repeat(129) }, '1 to 256 bytes, got 258 bytes'],
  [{ tenant: 'x'.repeat(1e6) }, '1 to 256 bytes, got 1000000 bytes'],
  [{ tenant: 5 }, 'got number'],
  [{ tenant: null }, 'must be a string'],
  [{ tenant: 'a\ud800' }, 'a lone surrogate at index 1'],
  [{ session: '' }, '1 to 256 bytes, got 0 bytes'],
  [{ priority: 11 }, 'from -10 to 10, got 11'],
  [{ priority: 0.5 }, 'got 0.5'],
  [{ timeoutMs: 0 }, 'from 1 to 2147483647, got 0'],
  [{ timeoutMs: Number.NaN }, 'got NaN'],
  [{ timeoutMs: Infinity }, 'got Infinity'],
])('%j is refused with its name and numbers', (options, words) => {
  expect(() => resolveGenerateOptions(options as GenerateOptions)).toThrow(
    expect.objectContaining({
      code: 'invalid_option',
      message: expect.stringContaining(words) as string,
      data: { option: Object.keys(options)[0] },
    }),
  );
});
