import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import type { TestSpecification, Vitest } from 'vitest/node';
import { LongestFirst } from './longest-first.ts';

test('isolated files first, then new ones by size, then the longest of the last runs', async () => {
  const root = mkdtempSync(join(tmpdir(), 'ruvllm-order-'));
  onTestFinished(() => rmSync(root, { recursive: true }));
  const durations = { 'a.test.ts': 5, 'b.test.ts': 900, 'deep/c.test.ts': 70, 'isolated.test.ts': 1 };
  for (const [path, text] of [
    ['.cache/test-durations.json', JSON.stringify(durations)],
    ['new.test.ts', 'x'],
    ['new-and-large.test.ts', 'x'.repeat(100)],
  ] as const) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  }
  const fileOf = (path: string, isolate = false) =>
    ({ moduleId: join(root, path), project: { config: { isolate } } }) as TestSpecification;
  const names = ['a.test.ts', 'new.test.ts', 'deep/c.test.ts', 'new-and-large.test.ts', 'b.test.ts'];
  const files = [...names.map((name) => fileOf(name)), fileOf('isolated.test.ts', true)];
  const sorted = await new LongestFirst({ config: { root } } as unknown as Vitest).sort(files);
  expect(sorted.map(({ moduleId }) => moduleId.slice(root.length + 1))).toEqual([
    'isolated.test.ts',
    'new-and-large.test.ts',
    'new.test.ts',
    'b.test.ts',
    'deep/c.test.ts',
    'a.test.ts',
  ]);
});
