import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { expect, test } from 'vitest';

const root = join(import.meta.dirname, '..');
const LIMITS: Readonly<Record<string, number>> = {
  'A streamed chat request': 40,
  'From a correction to a weight change': 25,
};

interface Step {
  readonly file: string;
  readonly depth: number;
}

function readWalk(title: string): Step[] {
  const text = readFileSync(join(root, 'docs/architecture.md'), 'utf8');
  const section = text.split(/^#{2,3} /m).find((part) => part.startsWith(`${title}\n`)) ?? '';
  return [...section.matchAll(/^( *)- `([^`]+)`/gm)].map(([, indent, file]) => ({
    file: file!,
    depth: indent!.length / 2,
  }));
}

function importsOf(file: string): string[] {
  const text = readFileSync(join(root, file), 'utf8');
  return [...text.matchAll(/(?:from |import\()'(\.[^']+)'/g)].map(([, path]) => normalize(join(dirname(file), path!)));
}

test.each(Object.entries(LIMITS))('%s takes at most %i files, each imported by the one above it', (title, limit) => {
  const steps = readWalk(title);
  const missing: string[] = [];
  const parents: string[] = [];
  for (const { file, depth } of steps) {
    parents.length = depth;
    const parent = parents.at(-1);
    if (!existsSync(join(root, file))) missing.push(`${file} does not exist`);
    else if (parent !== undefined && !importsOf(parent).includes(file))
      missing.push(`${parent} does not import ${file}`);
    parents.push(file);
  }
  expect(missing).toEqual([]);
  expect(steps.length).toBeGreaterThan(5);
  expect(new Set(steps.map(({ file }) => file)).size).toBeLessThanOrEqual(limit);
});
