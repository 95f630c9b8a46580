import { expect, test } from 'vitest';
import { PREBUILD_NAME } from './native-addon.ts';
import { describeMissingBuild, findAmxState, parseLargePages } from './native-tools.ts';

test('large pages: the word in brackets', () => {
  expect(parseLargePages('always [madvise] never\n')).toBe('madvise');
  expect(parseLargePages('always madvise [never]\n')).toBe('never');
  expect(parseLargePages('')).toBeNull();
});

test('AMX is there, permitted, or neither', () => {
  expect(findAmxState(['amx_int8', 'avx2'], ['avx2', 'amx'])).toBe('permitted');
  expect(findAmxState(['amx_int8', 'avx2'], ['avx2'])).toBe('refused');
  expect(findAmxState(['avx2'], ['avx2'])).toBe('absent');
  expect(findAmxState(['amx_int8'], null)).toBe('unknown');
  expect(findAmxState([], ['avx2'])).toBe('unknown');
});

test('what is missing: a compiler, a build, or a binary in the package', () => {
  expect(describeMissingBuild({ PATH: '/nowhere' }, true)).toBe(
    'no C compiler (cc): for example, apt-get install gcc libc6-dev, then npm run build:native',
  );
  expect(describeMissingBuild({ CC: '/nowhere/clang -O1', PATH: '/nowhere' }, true)).toMatch(/\(\/nowhere\/clang\)/);
  expect(describeMissingBuild({ CC: process.execPath }, true)).toBe('npm run build:native');
  expect(describeMissingBuild({}, false)).toBe(`this package has none for ${PREBUILD_NAME}`);
});
