// docs/api/ matches the output of `npm run docs:api`, and every public export has its sentence.
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { isServerBuilt } from './support/dist-server.ts';

const root = join(import.meta.dirname, '..');
const load = async <T>(path: string): Promise<T> => (await import(pathToFileURL(join(root, path)).href)) as T;

interface Declared {
  readonly name: string;
  readonly kind: string;
  readonly source: string;
  readonly comment: string | null;
}
interface ApiPages {
  readonly files: ReadonlyMap<string, string>;
  readonly missing: readonly string[];
}

describe.skipIf(!isServerBuilt)('the reference', () => {
  let pages: ApiPages;
  beforeAll(async () => {
    const { buildApiDocs } = await load<{ buildApiDocs(): Promise<ApiPages> }>('scripts/docs-api.mjs');
    pages = await buildApiDocs();
  });

  test('matches the code; otherwise run npm run docs:api', () => {
    const folder = join(root, 'docs/api');
    expect(readdirSync(folder).sort()).toEqual([...pages.files.keys()].sort());
    const stale = [...pages.files].filter(([name, text]) => readFileSync(join(folder, name), 'utf8') !== text);
    expect(stale.map(([name]) => name)).toEqual([]);
  });

  test('has a sentence for every export and route', () => {
    expect(pages.missing).toEqual([]);
  });

  test('has every runtime export', async () => {
    const { exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
      exports: Record<string, unknown>;
    };
    for (const [key, target] of Object.entries(exports)) {
      if (typeof target !== 'object') continue;
      const page = pages.files.get(key === '.' ? 'ruvllm.md' : `${key.slice(2)}.md`)!;
      const names = Object.keys((await import(`ruvllm${key.slice(1)}`)) as object);
      expect(names.filter((name) => !page.includes(`\n### ${name}\n`))).toEqual([]);
    }
  });
});

describe('the declaration reader', () => {
  const folder = mkdtempSync(join(tmpdir(), 'ruvllm-declarations-'));
  afterAll(() => rmSync(folder, { recursive: true }));

  async function read(files: Record<string, string>): Promise<Declared[]> {
    for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
    const { createDeclarationReader } = await load<{
      createDeclarationReader(root: string): { exportsOf(path: string): ReadonlyMap<string, Declared> };
    }>('scripts/docs/declarations.mjs');
    return [...createDeclarationReader(folder).exportsOf(join(folder, 'index.d.ts')).values()];
  }

  test('follows exports to their declarations, under their exported name', async () => {
    const entries = await read({
      'index.d.ts': "export { one as uno, type Two } from './a.ts';\nexport * from './b.ts';\n",
      'a.d.ts':
        "import type { Two } from './b.ts';\n/** First. */\nexport declare const one: 1;\nexport type { Two };\n",
      'b.d.ts':
        '/** Second. */\nexport interface Two {\n    /** }; */\n    a: ";";\n}\n/** A sum. */\nexport declare function f(a: {\n    b: number;\n}): void;\n',
    });
    expect(entries.map(({ name, kind, comment }) => [name, kind, comment])).toEqual([
      ['uno', 'const', 'First.'],
      ['Two', 'interface', 'Second.'],
      ['f', 'function', 'A sum.'],
    ]);
    expect(entries[1]!.source).toBe('interface Two {\n    /** }; */\n    a: ";";\n}');
    expect(entries[2]!.source).toBe('function f(a: {\n    b: number;\n}): void;');
  });

  test('attaches a comment only to the declaration after it', async () => {
    const entries = await read({
      'index.d.ts':
        "/** Of the import. */\nimport './a.ts';\nexport declare const bare: 1;\n/**\n * Two lines\n * of it.\n *\n * And more.\n */\nexport type T = 'a' | {\n    b: 1;\n};\n",
      'a.d.ts': '',
    });
    expect(entries.map(({ name, comment }) => [name, comment])).toEqual([
      ['bare', null],
      ['T', 'Two lines of it.\n\nAnd more.'],
    ]);
  });

  test('rejects declarations it cannot read', async () => {
    await expect(read({ 'index.d.ts': 'export declare let x: 1;\n' })).rejects.toThrow(
      'cannot read export declare let x',
    );
    await expect(read({ 'index.d.ts': "export { gone } from './a.ts';\n", 'a.d.ts': '' })).rejects.toThrow(
      'gone is not in',
    );
  });
});
