// docs/benchmarks.md is what `npm run docs:benchmarks` writes, and the README quotes only recorded figures.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, expect, test } from 'vitest';

const root = join(import.meta.dirname, '..');
const read = (path: string): string => readFileSync(join(root, path), 'utf8');

interface BenchmarkRun {
  readonly name: string;
  readonly date: string;
  readonly commit: string | null;
  readonly recordedIn: string;
  readonly machine: { readonly cpu: string | null; readonly cores: number | null; readonly conditions: string | null };
  /** The JSON line that the bench printed. */
  readonly output: object | null;
}
interface BenchmarkRecord {
  readonly file: string;
  readonly order: number;
  readonly title: string;
  readonly command: string;
  readonly measures: string;
  readonly runs: readonly BenchmarkRun[];
  readonly tables: readonly { readonly columns: readonly string[]; readonly rows: readonly (string | null)[][] }[];
  readonly notes: readonly string[];
}
interface BenchmarkScript {
  readBenchmarkRecords(): BenchmarkRecord[];
  buildBenchmarksPage(records?: readonly BenchmarkRecord[]): Promise<string>;
}

const { readBenchmarkRecords, buildBenchmarksPage } = (await import(
  pathToFileURL(join(root, 'scripts/docs-benchmarks.mjs')).href
)) as BenchmarkScript;
const records = readBenchmarkRecords();

test('docs/benchmarks.md matches its records; otherwise run npm run docs:benchmarks', async () => {
  expect(read('docs/benchmarks.md')).toBe(await buildBenchmarksPage());
});

describe.each(records.map((record) => [record.file, record] as const))('%s', (_file, record) => {
  test('names an existing command, a machine and a date', () => {
    const topic = /^npm run bench -- ([\w-]+)$/.exec(record.command)?.[1];
    const script = topic === undefined ? 'bench/compare.ts' : `bench/${topic}.bench.ts`;
    expect(topic !== undefined || record.command === 'npm run compare').toBe(true);
    expect(existsSync(join(root, script)), script).toBe(true);
    expect(record.runs.length).toBeGreaterThan(0);
    for (const run of record.runs) {
      expect(run.date).toMatch(/^\d{4}-\d{2}-\d{2}$/);
      expect(run.recordedIn).toMatch(/^[0-9a-f]{7,40}$/);
      expect(Object.keys(run).sort()).toEqual(['commit', 'date', 'machine', 'name', 'output', 'recordedIn']);
      expect(Object.keys(run.machine).sort()).toEqual(['conditions', 'cores', 'cpu']);
    }
  });

  test('has a cell for every column', () => {
    for (const { columns, rows } of record.tables) {
      expect(rows.filter((row) => row.length !== columns.length)).toEqual([]);
    }
  });
});

test('every record has its own place on the page', () => {
  expect(records.map(({ order }) => order)).toEqual(records.map((_, i) => i + 1));
});

test('an edited record changes the page', async () => {
  const [first, ...others] = records;
  const edited = await buildBenchmarksPage([{ ...first!, title: 'Another title' }, ...others]);
  expect(edited).toContain('## Another title');
  expect(edited).not.toBe(await buildBenchmarksPage());
});

/** Rows of the README's table whose last cell is a bench command. */
function quotedFigures(): { readonly figures: readonly string[]; readonly command: string }[] {
  return read('README.md')
    .split('\n')
    .flatMap((line) => {
      const cells = line.split('|').map((cell) => cell.trim());
      const command = /^`(npm run (?:bench -- [\w-]+|compare))`$/.exec(cells.at(-2) ?? '')?.[1];
      if (command === undefined) return [];
      return [{ figures: cells.slice(2, -2).filter((cell) => /\d/.test(cell)), command }];
    });
}

test('the README has six figures, each in the record of its command', () => {
  const quoted = quotedFigures();
  expect(quoted).toHaveLength(6);
  const wrong = quoted.flatMap(({ figures, command }) => {
    const record = records.find((one) => one.command === command);
    const recorded = new Set(record?.tables.flatMap(({ rows }) => rows.flat()) ?? []);
    return figures
      .flatMap((figure) => figure.match(/\d[\d.,]*(?: (?:ms|µs|s|MiB|%))?/g) ?? [])
      .filter((figure) => !recorded.has(figure))
      .map((figure) => `${figure} (${command})`);
  });
  expect(wrong).toEqual([]);
});
