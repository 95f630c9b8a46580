// Erasure in a program that uses the library: what a loaded model holds of a tenant.
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { createMemorySource, openGguf } from '../src/gguf/index.ts';
import type { Memory, Model } from '../src/index.ts';
import { readShape } from '../src/models/shape.ts';
import { importDist } from './support/import-dist.ts';
import { randomAdapter } from './support/random-adapter.ts';

const root = join(import.meta.dirname, '..');
const stories = join(root, '../shared/models/stories260K-f32.gguf');
const canRun = existsSync(join(root, 'dist/lib/index.js')) && existsSync(stories);
if (!canRun) console.log(`erasure tests skipped: dist/ is not built, or ${stories} does not exist`);

const PROMPT = 'Once upon a time there was a little girl named Lily. She had a big red ball and a small blue one';
const TENANTS = ['alice', 'bob'] as const;
let library: typeof import('../src/index.ts');
let folder: string;
let memory: Memory;
let model: Model;

beforeAll(async () => {
  if (canRun) library = await importDist<typeof import('../src/index.ts')>('index.js');
});
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'ruvllm-erase-library-'));
  const masterKey = { key: new Uint8Array(32).fill(7) };
  memory = await library.openMemory({ place: join(folder, 'memory'), masterKey, modelPath: null });
  model = await library.loadModel(stories, { memory, numThreads: 1 });
});
afterEach(async () => {
  await model.dispose();
  await memory.close();
  rmSync(folder, { recursive: true, force: true });
});

describe.skipIf(!canRun)('a tenant is erased', () => {
  test('[ER1] from the pages, sessions and adapters of a loaded model, and no other tenant is', async () => {
    const adapter = await randomAdapter(readShape(openGguf(createMemorySource(readFileSync(stories)))), { seed: 1, rank: 2 }); // prettier-ignore
    const options = { maxTokens: 4, temperature: 0 } as const;
    const held = async (tenant: string) => ({
      cachedTokens: (await model.cachedTokens(PROMPT, { tenant })).cachedTokens,
      numSessions: model.sessions({ tenant }).length,
      adapters: model.adapters().filter((one) => one.tenant === tenant).length,
    });
    for (const tenant of TENANTS) {
      await model.generate(PROMPT, { ...options, tenant });
      await model.session('s1', { tenant }).generate('The end', options);
      await model.loadAdapter(adapter, { name: 'own', tenant });
    }
    const before = await held('alice');
    expect(before).toEqual({ cachedTokens: expect.any(Number) as number, numSessions: 1, adapters: 1 });
    expect(before.cachedTokens).toBeGreaterThan(0);

    const { parts } = await memory.erase({ tenant: 'alice' });
    expect(parts.find(({ name }) => name.startsWith('pages and sessions'))).toMatchObject({ numLeft: 0 });
    expect(await held('alice')).toEqual({ cachedTokens: 0, numSessions: 0, adapters: 0 });
    expect(await held('bob')).toEqual(before);
  });

  test('[ER2] a user of it takes its sessions on disk, also without a model', async () => {
    const kvSpill = { folder: join(folder, 'spill'), masterKey: new Uint8Array(32).fill(7) };
    const kept = await library.loadModel(stories, { memory, kvSpill, numThreads: 1 });
    for (const user of ['ann', 'ben']) await kept.session(user).generate(PROMPT, { maxTokens: 4, user });
    await kept.dispose();
    await memory.erase({ tenant: 'local', userId: 'ann' });
    const again = await library.loadModel(stories, { memory, kvSpill, numThreads: 1 });
    expect(again.sessions().map(({ id }) => id)).toEqual(['ben']);
    await again.dispose();
  });

  test('[ER3] what a user taught is erased also where nothing learns any more', async () => {
    const options = { memory, corrections: false } as const;
    const [ann, ben] = ['a', 'b'].map((end) => `0199a0b4-7c00-7000-8000-00000000000${end}`) as [string, string];
    const learning = await library.openLearning(options);
    const pupil = await library.loadModel(stories, { memory, learning, modelName: 'pupil', numThreads: 1 });
    for (const [user, requestId] of Object.entries({ ann, ben })) {
      await pupil.generate(PROMPT, { maxTokens: 4, temperature: 0, user, requestId });
      const { learned } = await learning.feedback('local', { requestId, correction: ` said ${user}` });
      expect(await learned).toMatchObject({ outcome: 'learned' });
    }
    expect(await learning.sona.taught('local', 'pupil')).toEqual([ann, ben]);
    await pupil.dispose();
    await learning.close();

    const { parts } = await memory.erase({ tenant: 'local', userId: 'ann' });
    expect(parts.find(({ name }) => name === 'learned state')).toMatchObject({ numFound: 1, numLeft: 0 });
    const later = await library.openLearning(options);
    expect(await later.sona.taught('local', 'pupil')).not.toContain(ann);
    await later.close();
  });

  test('[ER2] a user of it takes only its own sessions, and the cached pages of the tenant', async () => {
    const options = { maxTokens: 4, temperature: 0 } as const;
    for (const user of ['ann', 'ben']) await model.session(user, { tenant: 'alice' }).generate(PROMPT, { ...options, user }); // prettier-ignore
    await memory.erase({ tenant: 'alice', userId: 'ann' });
    expect(model.sessions({ tenant: 'alice' }).map(({ id }) => id)).toEqual(['ben']);
    expect((await model.cachedTokens(PROMPT, { tenant: 'alice' })).cachedTokens).toBe(0);
  });
});
