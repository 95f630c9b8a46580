import { expect, test } from 'vitest';
import type { TestSpecification, Vitest } from 'vitest/node';
import { LongestFirst } from './longest-first.ts';

const fileOf = (path: string, isolate = false) =>
  ({ moduleId: `/here/${path}`, project: { name: 'p', config: { isolate, sequence: { groupOrder: 0 } } } }) as TestSpecification; // prettier-ignore
const context = {
  config: { root: '/here' },
  cache: { getFileTestResults: () => undefined, getFileStats: () => undefined },
} as unknown as Vitest;

test('runs isolated files first, then the longest, then all others in their order', async () => {
  const files = [
    fileOf('src/a.test.ts'),
    fileOf('test/cli.test.ts'),
    fileOf('src/b.test.ts'),
    fileOf('src/kernels/wasm/wasm-pack.test.ts'),
    fileOf('src/c.test.ts', true),
  ];
  const sorted = await new LongestFirst(context).sort(files);
  expect(sorted.map(({ moduleId }) => moduleId.replace('/here/', ''))).toEqual([
    'src/c.test.ts',
    'src/kernels/wasm/wasm-pack.test.ts',
    'test/cli.test.ts',
    'src/a.test.ts',
    'src/b.test.ts',
  ]);
});
