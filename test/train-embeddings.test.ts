// `ruvllm train embeddings`, and everything that applies its projection.
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { importDist } from './support/import-dist.ts';
import { isServerBuilt } from './support/dist-server.ts';
import { buildRandomModel } from './support/random-model.ts';
import { runCommand } from './support/run-command.ts';

if (!isServerBuilt) console.log('training of embeddings skipped: dist/ is not built, run "npm run build"');

const folder = mkdtempSync(join(tmpdir(), 'ruvllm-train-embeddings-'));
const [model, other, data, out] = ['tiny.gguf', 'other.gguf', 'pairs.jsonl', 'mine.gguf'].map((name) => join(folder, name)) as [string, string, string, string]; // prettier-ignore

const environment: Record<string, string> = {
  ...(process.env as Record<string, string>),
  RUVLLM_DATA_DIR: join(folder, 'data'),
  RUVLLM_STATE_DIR: join(folder, 'state'),
  HF_HUB_OFFLINE: '1',
};
const run = (...args: string[]) => runCommand(args, { environment });
const load = async () => ({
  ...(await importDist<typeof import('../src/node/memory/open-memory.ts')>('node/memory/open-memory.js')),
  ...(await importDist<typeof import('../src/node/memory/model-embedder.ts')>('node/memory/model-embedder.js')),
  ...(await importDist<typeof import('../src/node/projection-file.ts')>('node/projection-file.js')),
});

describe.skipIf(!isServerBuilt)('ruvllm train embeddings', () => {
  beforeAll(async () => {
    const random = (seed: number) =>
      buildRandomModel({ architecture: 'llama', type: 'F32', seed, shape: { contextLength: 128 } });
    writeFileSync(model, random(3));
    writeFileSync(other, random(4));
    const pairs = Array.from({ length: 60 }, (_, i) => ({
      anchor: `${i} ${i} a`,
      positive: `${i} b`,
      negative: `${i + 1} c`,
    }));
    writeFileSync(data, pairs.map((pair) => `${JSON.stringify(pair)}\n`).join(''));
    const { status, stdout, stderr } = await run('train', 'embeddings', data, '--model', model, '--output', out, '--learning-rate', '0.01', '--json'); // prettier-ignore
    expect([status, stderr]).toEqual([0, '']);
    trained = JSON.parse(stdout);
  });
  let trained: {
    bestEpoch: number;
    rank: number;
    heldOut: { name: string }[];
    numTrained: number;
    contentHash: string;
  };
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  test('the report has held-out figures before and after, and the control', async () => {
    const { readProjectionFile } = await load();
    expect(trained).toMatchObject({ rank: 32, numTrained: 42, numHeldOut: 12, seed: 1 });
    expect(trained.heldOut.map(({ name }) => name)).toEqual(['before', 'after', 'shuffled control']);
    expect(trained.bestEpoch).toBeGreaterThan(0);
    expect(readProjectionFile(out).contentHash).toBe(trained.contentHash);
  });

  test('embed applies the projection, and cuts and normalizes after it', async () => {
    const embed = async (...flags: string[]) => JSON.parse((await run('embed', model, 'a b c', ...flags)).stdout).embedding as number[]; // prettier-ignore
    const [plain, projected, cut] = [await embed(), await embed('--projection', out), await embed('--projection', out, '--dimensions', '4')]; // prettier-ignore
    expect(projected).toHaveLength(plain.length);
    expect(projected).not.toEqual(plain);
    expect(Math.hypot(...projected)).toBeCloseTo(1, 5);
    const length = Math.hypot(...projected.slice(0, 4));
    cut.forEach((value, i) => expect(value).toBeCloseTo(projected[i]! / length, 5));
    expect((await run('embed', model, 'a', '--projection', out, '--pooling', 'last')).stderr).toContain('--pooling cannot be combined with --projection'); // prettier-ignore
  });

  test('a projection of another model is refused', async () => {
    const { openModelEmbedder, readProjectionFile } = await load();
    expect((await run('embed', other, 'a', '--projection', out)).stderr).toContain('trained on another model');
    expect(() => openModelEmbedder(other, {}, readProjectionFile(out))).toThrow('trained on another model');
  });

  test('a projection is another space of the memory, and static embedders refuse it', async () => {
    const { openModelEmbedder, openNodeMemory, readProjectionFile } = await load();
    const [plain, projected] = [openModelEmbedder(model), openModelEmbedder(model, {}, readProjectionFile(out))];
    expect(projected.fingerprint).not.toBe(plain.fingerprint);
    expect(projected.dim).toBe(plain.dim);
    await Promise.all([plain.close(), projected.close()]);
    const place = join(folder, 'memory');
    const masterKey = { key: new Uint8Array(32) };
    const memory = await openNodeMemory({ place, masterKey, modelPath: model, embedder: 'model', projection: out });
    expect((await memory.stats('local')).embedder).toContain('projected');
    await memory.close();
    await expect(openNodeMemory({ place, masterKey, modelPath: model, projection: out })).rejects.toThrow('option "projection" requires the embedder'); // prettier-ignore
  });

  test('bench embeddings measures the projection beside the model', async () => {
    const { stdout } = await run('bench', 'embeddings', '--model', model, '--projection', out, '--json');
    const { methods } = JSON.parse(stdout) as { methods: { name: string }[] };
    expect(methods.map(({ name }) => name)).toEqual(['BM25', 'vectors', 'projected vectors', 'random order']);
  });

  test('too few pairs leave no file', async () => {
    const few = join(folder, 'few.jsonl');
    writeFileSync(few, '{"anchor": "a", "positive": "b"}\n');
    const path = join(folder, 'none.gguf');
    const { status, stderr } = await run('train', 'embeddings', few, '--model', model, '--output', path);
    expect(status).not.toBe(0);
    expect(stderr).toContain('1 groups of pairs; at least 20');
    expect(existsSync(path)).toBe(false);
  });

  test('unknown fields and flags of other commands are refused', async () => {
    const bad = join(folder, 'bad.jsonl');
    writeFileSync(bad, '{"anchor": "a", "positiv": "b"}\n');
    expect((await run('train', 'embeddings', bad, '--model', model, '--output', out)).stderr).toContain('line 1');
    expect((await run('train', 'embeddings', data, '--layers', '2')).stderr).toContain(
      '--layers is not an option of train embeddings',
    );
    expect((await run('train', 'embeddings', data, '--model', model, '--output', out, '--rank', '0')).stderr).toContain(
      '--rank',
    );
  });
});
