import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

/** Allowed imports by folder. `views/x` may import all of these, but nothing from `views/y`. */
const LAYERS: Readonly<Record<string, readonly string[]>> = {
  format: [],
  messages: ['format'],
  api: ['messages'],
  // Charts redraw when the theme changes, and API calls go through the session: both belong to `app`.
  components: ['api', 'app', 'format', 'messages'],
  app: ['api', 'components', 'format', 'messages'],
  views: ['api', 'app', 'components', 'format', 'messages'],
};

const root = dirname(fileURLToPath(import.meta.url));
const files = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter(
  (file) => /\.tsx?$/.test(file) && !file.endsWith('.test.ts'),
);

/** Returns each import statement with its module specifier. */
function importsOf(text: string): { statement: string; specifier: string }[] {
  return [
    ...text.matchAll(/(?:^|\n)\s*(?:import|export)\b[^;]*?from\s*['"]([^'"]+)['"]|\bimport\(\s*['"]([^'"]+)['"]/g),
  ].map(([statement, staticSpecifier, lazySpecifier]) => ({
    statement: statement.trim(),
    specifier: (staticSpecifier ?? lazySpecifier)!,
  }));
}

test('imports follow the layers, stay within one view, and take only types from the library', () => {
  const violations: string[] = [];
  for (const file of files) {
    const [layer, view] = file.split(sep);
    if (layer === 'main.tsx') continue;
    for (const { statement, specifier } of importsOf(readFileSync(join(root, file), 'utf8'))) {
      if (specifier.startsWith('node:')) violations.push(`${file}: ${specifier}`);
      if (!specifier.startsWith('.')) continue;
      const target = relative(root, join(root, dirname(file), specifier));
      const [folder, targetView] = target.split(sep);
      if (folder === '..') {
        if (!statement.startsWith('import type')) violations.push(`${file}: ${specifier} must be a type import`);
      } else if (folder === layer) {
        if (layer === 'views' && targetView !== view) violations.push(`${file}: imports the view ${targetView}`);
      } else if (!LAYERS[layer!]?.includes(folder!)) violations.push(`${file}: ${folder}`);
    }
  }
  expect(violations).toEqual([]);
  expect(files.length).toBeGreaterThan(40);
});

test('uses no HTML injection, eval, external URL or API that requires HTTPS', () => {
  const forbidden =
    /dangerouslySetInnerHTML|innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|randomUUID\(|https?:\/\/(?!www\.w3\.org)/;
  const violations = files.filter((file) => forbidden.test(readFileSync(join(root, file), 'utf8')));
  expect(violations).toEqual([]);
});
