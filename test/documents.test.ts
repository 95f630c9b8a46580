// Documents as users add and use them: the built command line, a served memory, and the answers that cite them.
import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { isServerBuilt } from './support/dist-server.ts';
import { makePdf } from './support/make-pdf.ts';
import { type CommandOutcome, runCommand } from './support/run-command.ts';
import { createServeFolder, type ServeFolder, type ServeProcess } from './support/serve-process.ts';

const bin = fileURLToPath(new URL('../bin/ruvllm.mjs', import.meta.url));
const canRun = isServerBuilt;
if (!canRun) console.log('documents skipped: they need dist/');

const root = mkdtempSync(join(tmpdir(), 'ruvllm-documents-'));
const at = (...names: string[]): string => join(root, ...names);
const TOPICS = [
  'parking',
  'lockers',
  'printing',
  'borrowing',
  'fines',
  'reading rooms',
  'events',
  'children',
  'music',
  'maps',
];
const filler = (topic: string): string =>
  Array.from({ length: 45 }, (_, i) => `Rule ${i * 37} on ${topic} concerns case ${i * i} of year ${1900 + i}.`).join(
    ' ',
  );
/** 30 KB with one sentence about a lighthouse. */
const HANDBOOK = `# Handbook\n\n${TOPICS.map((topic) => `## On ${topic}\n\n${filler(topic)}\n\n`).join('')}## Lighthouse\n\nThe lighthouse keeper feeds three grey cats at dawn.\n\n${TOPICS.slice(0, 3).map((topic) => `## More on ${topic}\n\n${filler(`${topic} again`)}\n\n`).join('')}`; // prettier-ignore
const QUESTION = 'How many grey cats does the lighthouse keeper feed at dawn?';

interface Source {
  readonly name: string;
  readonly headings: readonly string[];
  readonly start_char: number;
  readonly end_char: number;
  readonly start_line: number | null;
  readonly end_line: number | null;
  readonly start_page: number | null;
}

describe.skipIf(!canRun)('documents on a server', () => {
  let serving: ServeFolder;
  let server: ServeProcess;
  beforeAll(async () => {
    serving = createServeFolder({ contextLength: 1024 });
    server = await serving.start(serving.model);
  }, 120_000);
  afterAll(() => {
    serving.dispose();
    rmSync(root, { recursive: true, force: true });
  });

  const run = (args: readonly string[], input = ''): Promise<CommandOutcome> =>
    runCommand(['memory', ...args, '--url', server.url], { environment: serving.environment, input });
  const ask = async (content: string, memory: object) => {
    const response = await fetch(`${server.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'default', messages: [{ role: 'user', content }], max_tokens: 2, memory }),
    });
    const body = (await response.json()) as { memory: { outcome: string; num_tokens: number; sources: Source[] } };
    return { status: response.status, ...body.memory };
  };
  const of = (name: string): object => ({
    k: 1,
    minSimilarity: -1,
    filter: [{ field: 'source', is: '=', value: name }],
  });

  test('a Markdown file of 30 KB is added by the command line and cited with its lines', async () => {
    expect(HANDBOOK.length).toBeGreaterThan(30_000);
    writeFileSync(at('handbook.md'), HANDBOOK);
    const added = await run(['add', at('handbook.md')]);
    expect([added.status, added.stderr]).toEqual([0, '']);
    expect(added.stdout).toMatch(/^added {6}.*handbook\.md: \d\d chunks\n$/);
    const { status, outcome, sources } = await ask(QUESTION, { k: 3, minSimilarity: -1 });
    expect([status, outcome]).toEqual([200, 'used']);
    const cited = sources.find(({ headings }) => headings.includes('Lighthouse'))!;
    expect(HANDBOOK.slice(cited.start_char, cited.end_char)).toContain('three grey cats');
    const line = HANDBOOK.split('\n').findIndex((text) => text.includes('three grey cats')) + 1;
    expect(cited.start_line!).toBeLessThanOrEqual(line);
    expect(cited.end_line!).toBeGreaterThanOrEqual(line);
  });

  test('HTML, PDF and code are cited, too', async () => {
    const cats = 'The lighthouse keeper feeds three grey cats at dawn.';
    const paragraphs = TOPICS.map((topic) => `<h2>${topic}</h2><p>${filler(topic)}</p>`).join('\n');
    writeFileSync(
      at('page.html'),
      `<html><body><h1>Page</h1>\n${paragraphs}\n<h2>Cats</h2>\n<p>${cats}</p></body></html>`,
    );
    const pages = TOPICS.map((topic) => filler(topic).split('. ').slice(0, 40));
    writeFileSync(at('book.pdf'), makePdf([...pages, [{ text: 'Cats', size: 18 }, cats]]));
    const functions = TOPICS.map(
      (topic, i) => `function rule${i}() {\n  // ${filler(topic)}\n  return ${i};\n}\n`,
    ).join('\n');
    writeFileSync(
      at('cats.ts'),
      `${functions}\n/** ${cats} */\nexport function countCats(): number {\n  return 3;\n}\n`,
    );
    for (const [file, check] of [
      ['page.html', { headings: ['Page', 'Cats'], start_page: null }],
      ['book.pdf', { headings: ['Cats'], start_page: TOPICS.length + 1, start_line: null }],
      ['cats.ts', { headings: ['export function countCats(): number'] }],
    ] as const) {
      const added = await run(['add', at(file)]);
      expect([added.status, added.stderr], file).toEqual([0, '']);
      const { sources } = await ask(QUESTION, { ...of(at(file)), k: 3 });
      expect(sources, file).toContainEqual(expect.objectContaining({ name: at(file), ...check }));
    }
  });

  test('a changed file replaces its changed chunks, an unchanged one none', async () => {
    writeFileSync(at('changing.md'), HANDBOOK);
    await run(['add', at('changing.md')]);
    expect((await run(['add', at('changing.md')])).stdout).toContain('unchanged');
    writeFileSync(at('changing.md'), HANDBOOK.replace('three grey cats', 'nine black dogs'));
    expect((await run(['add', at('changing.md')])).stdout).toMatch(/updated .* 1 new, \d\d kept, 1 removed/);
    const { sources } = await ask('nine black dogs at dawn', of(at('changing.md')));
    expect(sources[0]!.headings).toContain('Lighthouse');
  });

  test('refused files are named with their reason, and the others are added', async () => {
    mkdirSync(at('mixed'));
    writeFileSync(at('mixed/good.txt'), 'A good text.');
    writeFileSync(at('mixed/empty.md'), '');
    writeFileSync(at('mixed/broken.pdf'), '%PDF-1.7 nothing else');
    writeFileSync(at('mixed/latin.txt'), Buffer.from([0x66, 0xfc, 0x72]));
    const { status, stdout, stderr } = await run(['add', at('mixed')]);
    expect(status).not.toBe(0);
    expect(stdout).toBe('added      mixed/good.txt: 1 chunk\n');
    for (const says of ['empty.md', 'damaged', 'UTF-8', '3 refused']) expect(stderr).toContain(says);
    const missing = await run(['add', 'no-such-file.md']);
    expect([missing.status !== 0, missing.stderr]).toEqual([true, expect.stringContaining('not found')]);
  });

  test('the budget is exact, says when nothing fitted, and gives way to a small context', async () => {
    for (const tokenBudget of [250, 500]) {
      const { num_tokens: numTokens, outcome } = await ask(QUESTION, { k: 5, tokenBudget, minSimilarity: -1 });
      expect([outcome, numTokens <= tokenBudget]).toEqual(['used', true]);
    }
    expect(await ask(QUESTION, { k: 5, tokenBudget: 2, minSimilarity: -1 })).toMatchObject({
      outcome: 'nothing_fitted',
    });
    const large = await ask(QUESTION, { k: 50, tokenBudget: 100_000, minSimilarity: -1 });
    expect([large.status, large.outcome]).toEqual([200, 'used']);
    const { stderr } = await run(['search', QUESTION, '--token-budget', '2']);
    expect(stderr).toContain('nothing fitted');
  });

  test('--watch follows a folder and ends cleanly', { timeout: 120_000 }, async () => {
    const folder = at('watched');
    mkdirSync(folder);
    writeFileSync(join(folder, 'one.md'), 'The first file.');
    const child = spawn(process.execPath, [bin, 'memory', 'add', folder, '--watch', '--url', server.url], {
      env: serving.environment,
    });
    let output = '';
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (piece: Buffer) => (output += piece.toString()));
    const ended = new Promise<number | null>((resolve) => child.on('exit', resolve));
    const shows = (text: string) => expect.poll(() => output, { timeout: 30_000 }).toContain(text);
    await shows('watching');
    writeFileSync(join(folder, 'two.md'), 'The second file.');
    await shows('added      watched/two.md');
    writeFileSync(join(folder, 'one.md'), 'The first file, changed.');
    await shows('updated    watched/one.md');
    rmSync(join(folder, 'two.md'));
    await shows('removed    watched/two.md');
    child.kill('SIGINT');
    expect(await ended).toBe(0);
  });

  test('documents are listed, shown with their requests, and removed', async () => {
    const { documents } = JSON.parse((await run(['documents', '--json'])).stdout) as {
      documents: { id: string; name: string }[];
    };
    const { id } = documents.find(({ name }) => name === at('handbook.md'))!;
    await expect
      .poll(async () => (await run(['document', id])).stdout, { timeout: 30_000 })
      .toMatch(/lines \d+–\d+ › Handbook › Lighthouse {2}\d requests?\n/);
    expect((await run(['rm', id])).stdout).toBe('1 removed\n');
    expect((await run(['document', id])).stderr).toContain('not found');
    const { num_left_out: left, sources } = (await ask(QUESTION, of(at('handbook.md')))) as never as { num_left_out: number; sources: [] }; // prettier-ignore
    expect([left, sources]).toEqual([0, []]);
  });
});
