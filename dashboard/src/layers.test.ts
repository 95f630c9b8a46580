import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

/** Which folder may import which. `views/x` may import all of these, and nothing of `views/y`. */
const LAYERS: Readonly<Record<string, readonly string[]>> = {
  format: [],
  api: [],
  // A chart is drawn again with the theme, and the session is where calls come from: both are the app's.
  components: ['api', 'app', 'format'],
  app: ['api', 'components', 'format'],
  views: ['api', 'app', 'components', 'format'],
};

const root = dirname(fileURLToPath(import.meta.url));
const files = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter(
  (file) => /\.tsx?$/.test(file) && !file.endsWith('.test.ts'),
);

/** The statement and what it names. */
function importsOf(text: string): { statement: string; specifier: string }[] {
  return [
    ...text.matchAll(/(?:^|\n)\s*(?:import|export)\b[^;]*?from\s*['"]([^'"]+)['"]|\bimport\(\s*['"]([^'"]+)['"]/g),
  ].map(([statement, named, lazy]) => ({ statement: statement.trim(), specifier: (named ?? lazy)! }));
}

test('folders import what their row allows, views no other view, and nothing of the library but types', () => {
  const violations: string[] = [];
  for (const file of files) {
    const [layer, view] = file.split(sep);
    if (layer === 'main.tsx') continue;
    for (const { statement, specifier } of importsOf(readFileSync(join(root, file), 'utf8'))) {
      if (specifier.startsWith('node:')) violations.push(`${file}: ${specifier}`);
      if (!specifier.startsWith('.')) continue;
      const target = relative(root, join(root, dirname(file), specifier));
      const [folder, other] = target.split(sep);
      if (folder === '..') {
        if (!statement.startsWith('import type')) violations.push(`${file}: ${specifier} is not only types`);
      } else if (folder === layer) {
        if (layer === 'views' && other !== view) violations.push(`${file}: another view, ${other}`);
      } else if (!LAYERS[layer!]?.includes(folder!)) violations.push(`${file}: ${folder}`);
    }
  }
  expect(violations).toEqual([]);
  expect(files.length).toBeGreaterThan(40);
});

test('no file makes HTML out of text, runs any, or needs what only pages of HTTPS have', () => {
  const forbidden =
    /dangerouslySetInnerHTML|innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|randomUUID\(|https?:\/\/(?!www\.w3\.org)/;
  const found = files.filter((file) => forbidden.test(readFileSync(join(root, file), 'utf8')));
  expect(found).toEqual([]);
});
