// `ruvllm bench` as users run it, on its bundled sets and on their own data.
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { trajectoryFixture } from '../src/learning/trajectories/harness.contract.ts';
import { sumsAndLetters } from '../src/learning/router/test-examples.contract.ts';
import { importDist } from './support/import-dist.ts';
import { isServerBuilt } from './support/dist-server.ts';
import { buildRandomModel } from './support/random-model.ts';
import { runCommand } from './support/run-command.ts';

if (!isServerBuilt) console.log('bench commands skipped: dist/ is not built, run "npm run build"');

const folder = mkdtempSync(join(tmpdir(), 'ruvllm-cli-bench-'));
const model = join(folder, 'tiny.gguf');
const state = join(folder, 'user');

const environment: Record<string, string> = {
  ...(process.env as Record<string, string>),
  RUVLLM_DATA_DIR: join(state, 'data'),
  RUVLLM_STATE_DIR: join(state, 'state'),
  RUVLLM_MASTER_KEY: Buffer.alloc(32, 7).toString('base64'),
  HF_HUB_OFFLINE: '1',
};

beforeAll(() => {
  const shape = { contextLength: 512 };
  writeFileSync(model, buildRandomModel({ architecture: 'llama', type: 'F32', seed: 3, shape }));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const run = (...args: string[]) => runCommand(['bench', ...args], { environment });
async function json(...args: string[]) {
  const { status, stdout } = await run(...args, '--json');
  expect([status, status === 0 ? '' : stdout]).toEqual([0, '']);
  return JSON.parse(stdout);
}
function write(name: string, rows: readonly object[]): string {
  const path = join(folder, name);
  writeFileSync(path, rows.map((row) => `${JSON.stringify(row)}\n`).join(''));
  return path;
}
const existing = (path: string): string[] => {
  try {
    return readdirSync(path, { recursive: true, encoding: 'utf8' });
  } catch {
    return [];
  }
};

describe.skipIf(!isServerBuilt)('ruvllm bench', () => {
  test('routing finds the gain of the bundled set at equal cost and none in shuffled qualities, and names its conditions', async () => {
    const document = await json('routing', '--seed', '4');
    expect(document).toMatchObject({
      topic: 'routing',
      seed: 4,
      baseline: 'best blind mixture of candidates at equal cost',
      data: { name: 'bundled', numRows: 61, sha256: expect.stringMatching(/^[0-9a-f]{64}$/) },
      machine: { node: process.version, numCores: expect.any(Number), cpu: expect.any(String) },
      isClaimed: true,
    });
    expect(document.commit === null || /^[0-9a-f]{40}$/.test(document.commit)).toBe(true);
    const { policies, equalCost, area, control } = document;
    expect(policies.map(({ name, cost }: { name: string; cost: number }) => [name, cost])).toEqual([
      ['always small', 1],
      ['always large', 10],
      ['random', 5.5],
    ]);
    expect(equalCost.map(({ cost }: { cost: number }) => cost)).toEqual([3.25, 5.5, 7.75]);
    const middle = equalCost[1];
    expect(middle.gain.mean).toBeCloseTo(middle.router - middle.blind, 10);
    expect(middle.gain.low).toBeGreaterThan(0);
    expect(area.low).toBeGreaterThan(0);
    expect(control.most).toBeLessThan(area.mean);
  });

  test('routing prints a table with intervals, the same for the same seed', async () => {
    const words = ['prove derive lemma', 'list names fruit'];
    const rows = Array.from({ length: 30 }, (_, i) => ({ prompt: `${words[i % 2]!} ${i}`, qualities: { small: i % 2, large: 1 } })); // prettier-ignore
    const args = ['routing', '--data', write('rated.jsonl', rows), '--cost', 'small=1', '--cost', 'large=10'];
    const { status, stdout, stderr } = await run(...args);
    expect(status).toBe(0);
    expect(stdout).toContain('always small (cheapest)');
    expect(stdout).toContain('always large (best)');
    expect(stdout).toMatch(/5\.500 +\d\.\d{3} +0\.\d{3} +-?0\.\d{3} \[-?0\.\d{3}, 0\.\d{3}\]/);
    expect(stderr).toContain('rated.jsonl, 30 rows');
    expect(stderr).toContain('seed 1');
    expect((await run(...args)).stdout).toBe(stdout);
  });

  test.each([
    [[{ prompt: 'a', qualities: { small: 2 } }], 'line 1'],
    [[{ prompt: 'a', qualities: { small: 1, large: 1 } }], '1 rated prompts; at least 30'],
  ])('routing refuses bad data: %j', async (rows, message) => {
    const { status, stderr } = await run('routing', '--data', write('bad.jsonl', rows));
    expect(status).not.toBe(0);
    expect(stderr).toContain(message);
  });

  test('routing requires the costs of all candidates', async () => {
    const rows = Array.from({ length: 30 }, (_, i) => ({ prompt: `p${i}`, qualities: { small: 0, large: 1 } }));
    const path = write('costless.jsonl', rows);
    expect((await run('routing', '--data', path, '--cost', 'small=1')).stderr).toContain('the cost of "large" is missing'); // prettier-ignore
    expect((await run('routing', '--data', path, '--cost', 'tiny=1')).stderr).toContain('cost of "tiny", which is no candidate'); // prettier-ignore
    expect((await run('routing', '--data', path, '--cost', 'small=1', '--cost', 'large=1')).stderr).toContain('all candidates cost 1'); // prettier-ignore
    const uneven = write('uneven.jsonl', [...rows, { prompt: 'x', qualities: { small: 1 } }]);
    expect((await run('routing', '--data', uneven)).stderr).toContain('rated prompt 31 has no quality of "large"');
  });

  test('routing --from-memory judges the rated requests of a memory and leaves them as they are', async () => {
    const place = join(folder, 'memory');
    const { openNodeMemory } = await importDist<typeof import('../src/node/memory/open-memory.ts')>('node/memory/open-memory.js'); // prettier-ignore
    const { createTrajectories } = await importDist<typeof import('../src/learning/trajectories/trajectories.ts')>('learning/trajectories/trajectories.js'); // prettier-ignore
    const options = { place, modelPath: null, masterKey: { key: new Uint8Array(32).fill(7) } };
    const memory = await openNodeMemory(options);
    const trajectories = createTrajectories(memory.store, memory.services);
    const data = sumsAndLetters(60, 3);
    for (const [i, { text, isHard, group }] of data.entries()) {
      const name = i % 2 === 0 ? 'small' : 'large';
      const quality = (name === 'large') === isHard ? 1 : 0;
      const changes = { model: name, query: text, prompt: text, sessionId: group, quality, createdMs: Date.now(), embedding: null, space: null, parameters: { propensity: null } }; // prettier-ignore
      await trajectories.add('local', trajectoryFixture(i, changes));
    }
    await memory.close();
    const document = await json(
      'routing',
      '--from-memory',
      '--memory',
      place,
      '--cost',
      'small=1',
      '--cost',
      'large=10',
    );
    expect(document).toMatchObject({ isEstimated: true, numRequests: 60, data: { name: 'memory', numRows: 60 } });
    expect(document.router.quality).toBeGreaterThan(document.blind.quality);
    const again = await openNodeMemory(options);
    const found = await createTrajectories(again.store, again.services).find('local', { limit: 100 });
    expect(found).toHaveLength(60);
    await again.close();
  });

  test('embeddings compares vectors with BM25 and a random order', async () => {
    const document = await json('embeddings', '--model', model);
    expect(document.methods.map(({ name }: { name: string }) => name)).toEqual(['BM25', 'vectors', 'random order']);
    expect(document).toMatchObject({ baseline: 'BM25', numTexts: 30, numQueries: 30 });
    for (const { figures } of document.methods) {
      expect(Object.keys(figures)).toEqual(['recall@1', 'recall@5', 'recall@10', 'MRR']);
      expect(figures['recall@10'].mean).toBeGreaterThanOrEqual(figures['recall@1'].mean);
      expect(figures.MRR.low).toBeLessThanOrEqual(figures.MRR.mean);
    }
  });

  test('pairs of one anchor are one query, and a query must name texts of the data', async () => {
    const pairs = Array.from({ length: 6 }, (_, i) => ({ anchor: `word${i} word${i}`, positive: `word${i} other` }));
    const path = write('pairs.jsonl', [
      ...pairs,
      { anchor: pairs[0]!.anchor, positive: 'word0 third', negative: 'none' },
    ]);
    const document = await json('embeddings', '--model', model, '--data', path);
    expect(document).toMatchObject({ numTexts: 8, numQueries: 6 });
    expect(document.methods[0].figures['recall@5'].mean).toBe(1);
    const lost = write('lost.jsonl', [
      { id: 'a', text: 'b' },
      { query: 'c', relevant: ['z'] },
    ]);
    expect((await run('embeddings', '--model', model, '--data', lost)).stderr).toContain('names the text "z", which is not in the data'); // prettier-ignore
  });

  test('memory measures its search beside BM25 and vectors, and does not touch the memory of the user', async () => {
    const before = existing(state).filter((path) => path.includes('memory'));
    const document = await json('memory', '--model', model);
    expect(document.methods.map(({ name }: { name: string }) => name)).toEqual(['BM25', 'vectors', 'memory search']);
    expect(document).toMatchObject({ baseline: 'BM25', numTexts: 24, numQueries: 23 });
    expect(document.methods[2].figures['recall@10'].mean).toBeGreaterThan(0.3);
    expect(existing(state).filter((path) => path.includes('memory'))).toEqual(before);
  });

  test('learning reports all stages with a shuffled control, and does not touch the memory of the user', async () => {
    const before = existing(state).filter((path) => path.includes('memory'));
    const lessons = Array.from({ length: 5 }, (_, i) => ({ question: `q${i}?`, correction: `c${i}`, paraphrases: [`p${i}?`] })); // prettier-ignore
    const document = await json('learning', '--model', model, '--data', write('lessons.jsonl', lessons));
    expect(document).toMatchObject({ baseline: 'the model before learning', numTaught: 5, numHeldOut: 5 });
    expect(document.stages.map(({ name }: { name: string }) => name)).toEqual([
      'before',
      'after loop A',
      'after loops A and B',
      'shuffled control, after loop A',
      'shuffled control, after loops A and B',
    ]);
    const [first, instant, , shuffledInstant] = document.stages;
    expect(first.lossChange).toBeNull();
    // A random model knows nothing: one step per lesson must change the loss, or the scores ignore what was learned.
    expect(instant.loss).not.toBe(first.loss);
    expect(shuffledInstant.loss).not.toBe(instant.loss);
    const counts = Object.values(document.loops.taught.instant as Record<string, number>);
    expect(document.beyondControl[0].lossChange.mean).toBeCloseTo(instant.loss - shuffledInstant.loss, 6);
    expect(counts.reduce((sum, count) => sum + count, 0)).toBe(5);
    expect(existing(state).filter((path) => path.includes('memory'))).toEqual(before);
  });

  test('the bundled sets are small', () => {
    for (const topic of ['routing', 'embeddings', 'learning', 'memory'])
      expect(readFileSync(fileURLToPath(new URL(`../datasets/${topic}.jsonl`, import.meta.url))).length).toBeLessThan(
        10_000,
      );
  });
});
