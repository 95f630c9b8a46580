// Models and memory in the storage of a page: interrupted, refused, full, damaged, and open in two tabs.
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { Page } from 'playwright-core';
import { describe, expect, test } from 'vitest';
import { openLibraryPage, openSecondTab, waitForLibrary } from './support/library-page.ts';
import { canRun, type SiteOptions, startSite, STORIES, TINY } from './support/site.ts';

const bytes = canRun ? readFileSync(TINY) : Buffer.alloc(0);
const hashOf = (content: Uint8Array): string => createHash('sha256').update(content).digest('hex');
const SHA256 = hashOf(bytes);
const ADDRESS = '/files/stories.gguf';

/** Cuts the connection after `numBytes` of the first request. */
function breakOnce(numBytes: number): SiteOptions['answer'] {
  let isBroken = false;
  return (request, response) => {
    if (isBroken || !request.url!.startsWith(ADDRESS)) return false;
    isBroken = true;
    response.writeHead(200, {
      'content-length': bytes.length,
      etag: `"${bytes.length}"`,
      'cross-origin-resource-policy': 'same-origin',
    });
    response.write(bytes.subarray(0, numBytes), () => setTimeout(() => response.destroy(), 200));
    return true;
  };
}

const store = (page: Page, options: object = {}, source: string = ADDRESS) =>
  page.evaluate(
    ({ source: from, options: given }) =>
      ruvllm.storeModel(from, given).then(
        (model) => ({ model, error: null }),
        ({ code, message, data, isRetryable }) => ({ model: null, error: { code, message, data, isRetryable } }),
      ),
    { source, options },
  );
const list = (page: Page) => page.evaluate(() => ruvllm.listModels());

/** Stores bytes as a file that the user dropped. */
const drop = (page: Page, name: string, content: Uint8Array) =>
  page.evaluate(
    ({ name: fileName, base64 }) =>
      ruvllm.storeModel(new File([Uint8Array.from(atob(base64), (char) => char.charCodeAt(0))], fileName)).then(
        ({ sizeBytes }) => ({ sizeBytes, error: null }),
        ({ code, message }) => ({ sizeBytes: 0, error: { code, message } }),
      ),
    { name, base64: Buffer.from(content).toString('base64') },
  );

describe.skipIf(!canRun)('models in the storage of a page', () => {
  test('a broken download is no model; the next attempt continues it and has the right hash', async () => {
    const half = 600_000;
    await using site = await startSite({ files: { 'stories.gguf': TINY }, answer: breakOnce(half)! });
    await using watched = await openLibraryPage(site);
    const { page } = watched;
    const broken = await store(page);
    expect(broken.error).toMatchObject({ code: 'download_failed', isRetryable: true });
    expect(await list(page)).toMatchObject([{ name: 'stories.gguf', isComplete: false }]);
    expect(await page.evaluate(() => ruvllm.loadModel('stories.gguf').catch(({ code }) => code))).toBe('not_found');
    await page.reload();
    await waitForLibrary(page);
    site.requests.length = 0;
    const { model } = await store(page, { sha256: SHA256 });
    expect(model).toMatchObject({ name: 'stories.gguf', sizeBytes: bytes.length, sha256: SHA256, isComplete: true });
    const [range] = site.requests.filter((line) => line.includes(ADDRESS));
    const start = Number(/bytes=(\d+)-/.exec(range!)![1]);
    expect(start).toBeGreaterThan(half / 2);
    expect(start).toBeLessThanOrEqual(half);
    expect(await list(page)).toHaveLength(1);
  });

  test('a tab that is closed in the middle of a download leaves a part that is continued', async () => {
    const large = readFileSync(STORIES);
    let release = (): void => {};
    let isFirst = true;
    await using site = await startSite({
      files: { 'stories.gguf': STORIES },
      answer(request, response) {
        if (!isFirst || !request.url!.startsWith(ADDRESS)) return false;
        isFirst = false;
        response.writeHead(200, { 'content-length': large.length, etag: `"${large.length}"`, 'cross-origin-resource-policy': 'same-origin' }); // prettier-ignore
        response.write(large.subarray(0, 20 << 20));
        release = () => response.destroy();
        return true;
      },
    });
    await using watched = await openLibraryPage(site);
    const tab = await openSecondTab(watched);
    await waitForLibrary(tab);
    await tab.evaluate(
      (source) =>
        new Promise<void>((resolve) => {
          const onProgress = ({ doneBytes }: { doneBytes: number }): void => {
            if (doneBytes > 17 << 20) resolve();
          };
          void ruvllm.storeModel(source, { onProgress });
        }),
      ADDRESS,
    );
    await tab.close();
    release();
    const { page } = watched;
    expect(await list(page)).toMatchObject([{ isComplete: false }]);
    site.requests.length = 0;
    await expect.poll(async () => (await store(page)).model?.sha256).toBe(hashOf(large));
    expect(site.requests.some((line) => /bytes=1\d{7}-/.test(line))).toBe(true);
  });

  test('a changed file on the server starts again', async () => {
    const other = Buffer.from(bytes);
    other[other.length - 1]! ^= 1;
    await using site = await startSite({ files: { 'stories.gguf': other }, answer: breakOnce(600_000)! });
    await using watched = await openLibraryPage(site);
    const { page } = watched;
    expect((await store(page)).error?.code).toBe('download_failed');
    // Another version of the same size has another ETag.
    site.etag = '"another"';
    const { model } = await store(page);
    expect(model?.sha256).toBe(hashOf(other));
  });

  test('refuses another hash, truncated and hostile files, and leaves nothing of them', async () => {
    const hostile = Buffer.from(bytes.subarray(0, 4096));
    hostile.writeBigUInt64LE(2n ** 60n, 8); // tensors
    await using site = await startSite({
      files: {
        'stories.gguf': TINY,
        'cut.gguf': bytes.subarray(0, 1_000_000),
        'page.gguf': Buffer.from('<html>404'),
      },
    });
    await using watched = await openLibraryPage(site, [404]);
    const { page } = watched;
    expect((await store(page, { sha256: '0'.repeat(64) })).error).toMatchObject({
      code: 'hash_mismatch',
      data: { sha256: SHA256 },
    });
    expect((await store(page, {}, '/files/cut.gguf')).error).toMatchObject({ code: 'invalid_model_file' });
    expect((await store(page, {}, '/files/page.gguf')).error).toMatchObject({
      code: 'invalid_model_file',
      message: expect.stringContaining('"<htm"'),
    });
    expect((await store(page, {}, '/files/absent.gguf')).error).toMatchObject({
      code: 'download_failed',
      data: { status: 404 },
    });
    expect(await drop(page, 'cut.gguf', bytes.subarray(0, 100_000))).toMatchObject({
      error: { code: 'invalid_model_file' },
    });
    expect(await drop(page, 'hostile.gguf', hostile)).toMatchObject({ error: { code: 'invalid_model_file' } });
    expect(await drop(page, '../x.gguf', bytes.subarray(0, 10))).toMatchObject({ error: { code: 'invalid_option' } });
    expect(await list(page)).toEqual([]);
  });

  test('a full storage is told with the numbers, and loses nothing: the import continues when there is space', async () => {
    // As if the server did not tell the length.
    const isUnknown = { value: false };
    await using site = await startSite({
      files: { 'stories.gguf': TINY },
      answer(request, response) {
        if (!isUnknown.value || !request.url!.startsWith(ADDRESS)) return false;
        response.writeHead(200, { 'cross-origin-resource-policy': 'same-origin' });
        response.end(bytes);
        return true;
      },
    });
    await using watched = await openLibraryPage(site);
    const { page } = watched;
    const devtools = await page.context().newCDPSession(page);
    const setQuota = (quotaSize?: number) =>
      devtools.send('Storage.overrideQuotaForOrigin', { origin: new URL(site.url).origin, ...(quotaSize === undefined ? {} : { quotaSize }) }); // prettier-ignore
    await setQuota(400_000);
    expect((await store(page)).error).toMatchObject({ code: 'disk_full' });
    expect((await store(page)).error?.data.neededBytes).toBeGreaterThan(bytes.length - 400_000);
    isUnknown.value = true;
    expect((await store(page)).error).toMatchObject({ code: 'disk_full' });
    expect((await list(page)).every(({ isComplete }) => !isComplete)).toBe(true);
    await setQuota();
    isUnknown.value = false;
    expect((await store(page)).model).toMatchObject({ sha256: SHA256 });
  });

  test('an aborted import is continued; a stored model is removed', async () => {
    await using site = await startSite({ files: { 'stories.gguf': TINY } });
    await using watched = await openLibraryPage(site);
    const { page } = watched;
    const code = await page.evaluate(async (source) => {
      const controller = new AbortController();
      const onProgress = ({ doneBytes }: { doneBytes: number }): void => {
        if (doneBytes > 0) controller.abort();
      };
      return ruvllm.storeModel(source, { signal: controller.signal, onProgress }).then(
        () => 'stored',
        (error) => error.code,
      );
    }, ADDRESS);
    expect(['aborted', 'stored']).toContain(code);
    expect((await store(page)).model).toMatchObject({ sha256: SHA256 });
    expect(await page.evaluate(() => ruvllm.removeModel('stories.gguf'))).toBe(true);
    expect(await page.evaluate(() => ruvllm.removeModel('stories.gguf'))).toBe(false);
    expect(await list(page)).toEqual([]);
  });

  test('two tabs load the same model, and only one stores it', async () => {
    await using site = await startSite({ files: { 'stories.gguf': TINY } });
    await using watched = await openLibraryPage(site);
    const tab = await openSecondTab(watched);
    await waitForLibrary(tab);
    const results = await Promise.all([store(watched.page), store(tab)]);
    const codes = results.map(({ error }) => error?.code ?? 'stored');
    expect(codes).toContain('stored');
    expect(codes.every((code) => code === 'stored' || code === 'in_use')).toBe(true);
    const generate = (page: Page) =>
      page.evaluate(async () => {
        const model = await ruvllm.loadModel('stories.gguf');
        globalThis.kept = { ...globalThis.kept, model };
        return (await model.generate('Once upon a time', { maxTokens: 8, temperature: 0 })).text;
      });
    expect(await generate(tab)).toBe(await generate(watched.page));
  });
});

const openMemory = (page: Page, passphrase: string | null = null) =>
  page.evaluate(
    async (secret) => {
      const key = secret === null ? await ruvllm.openDeviceKey() : await ruvllm.openPassphraseKey(secret);
      const memory = await ruvllm.openMemory({ key });
      globalThis.kept = { ...globalThis.kept, memory };
    },
    passphrase,
  ).then(() => null, (error: Error) => error.message); // prettier-ignore

describe.skipIf(!canRun)('the memory in the storage of a page', () => {
  test('finds texts, sessions and the audit log after a reload, and nothing is readable on disk', async () => {
    await using site = await startSite({ files: { 'stories.gguf': TINY } });
    await using watched = await openLibraryPage(site);
    const { page } = watched;
    expect(await openMemory(page)).toBeNull();
    await page.evaluate(async (source) => {
      const { memory } = globalThis.kept;
      await memory.add('local', { text: 'The zanzibar library opens at nine.', kind: 'fact' });
      const model = await ruvllm.loadModel(source, { memory });
      await model.generate('Once upon a time', { maxTokens: 4, session: 'walk' });
      await model.dispose();
      await memory.audit.flush();
    }, ADDRESS);
    await page.reload(); // without close(): a closed tab does not close either
    await waitForLibrary(page);
    expect(await openMemory(page)).toBeNull();
    const after = await page.evaluate(async () => {
      const { memory } = globalThis.kept;
      const { results } = await memory.search('local', { text: 'library opens', k: 3 });
      const { isIntact, numChecked } = await memory.audit.verify('local');
      const readAll = async (folder: FileSystemDirectoryHandle): Promise<string> => {
        let text = '';
        for await (const entry of (folder as unknown as { values(): AsyncIterable<FileSystemHandle> }).values()) {
          if (entry.kind === 'directory') text += await readAll(entry as FileSystemDirectoryHandle);
          else if (!entry.name.endsWith('.gguf'))
            text += await (await (entry as FileSystemFileHandle).getFile()).text();
        }
        return text;
      };
      const onDisk = await readAll(await navigator.storage.getDirectory());
      return {
        texts: results.map(({ text }) => text),
        isIntact,
        numChecked,
        isLeaked: onDisk.includes('zanzibar'),
        numChars: onDisk.length,
        violations: globalThis.violations,
      };
    });
    expect(after).toMatchObject({
      texts: ['The zanzibar library opens at nine.'],
      isIntact: true,
      numChecked: 1,
      isLeaked: false,
      violations: [],
    });
    expect(after.numChars).toBeGreaterThan(1000);
  });

  test('erasing a tenant leaves nothing of it', async () => {
    await using site = await startSite();
    await using watched = await openLibraryPage(site);
    const { page } = watched;
    await openMemory(page);
    await page.evaluate(async () => {
      const { memory } = globalThis.kept;
      await memory.add('local', { text: 'something private', kind: 'fact' });
      await memory.erase({ tenant: 'local' });
      await memory.close();
    });
    await openMemory(page);
    const found = await page.evaluate(async () => {
      const { results } = await globalThis.kept.memory.search('local', { text: 'something private', k: 3 });
      return results.length;
    });
    expect(found).toBe(0);
  });

  test('a second tab is told that the first has it, and gets it when that is closed', async () => {
    await using site = await startSite();
    await using watched = await openLibraryPage(site);
    const tab = await openSecondTab(watched);
    await waitForLibrary(tab);
    expect(await openMemory(tab)).toBeNull();
    await tab.evaluate(() => globalThis.kept.memory.add('local', { text: 'written in the other tab', kind: 'fact' }));
    const error = await watched.page.evaluate(async () =>
      ruvllm.openMemory({ key: await ruvllm.openDeviceKey() }).then(
        () => null,
        ({ code, message }) => ({ code, message }),
      ),
    );
    expect(error).toEqual({ code: 'in_use', message: expect.stringContaining('another tab has it open') });
    await tab.close();
    await expect.poll(() => openMemory(watched.page)).toBeNull();
    const texts = await watched.page.evaluate(async () => {
      const { results } = await globalThis.kept.memory.search('local', { text: 'other tab', k: 3 });
      return results.map(({ text }) => text);
    });
    expect(texts).toEqual(['written in the other tab']);
  });

  test('another passphrase or key opens nothing and changes nothing', async () => {
    await using site = await startSite();
    await using watched = await openLibraryPage(site);
    const { page } = watched;
    expect(await openMemory(page, 'first words')).toBeNull();
    await page.evaluate(async () => {
      await globalThis.kept.memory.add('local', { text: 'kept by a passphrase', kind: 'fact' });
      await globalThis.kept.memory.close();
    });
    expect(await openMemory(page, 'other words')).toContain('not the one that this page was set up with');
    expect(await openMemory(page)).toContain('sealed with another key');
    expect(await openMemory(page, 'first words')).toBeNull();
    const found = await page.evaluate(async () => {
      const { results } = await globalThis.kept.memory.search('local', { text: 'passphrase', k: 3 });
      return results.map(({ text }) => text);
    });
    expect(found).toEqual(['kept by a passphrase']);
  });

  test('half a record at the end, as a closed tab leaves it, costs only that record', async () => {
    await using site = await startSite();
    await using watched = await openLibraryPage(site);
    const { page } = watched;
    await openMemory(page);
    await page.evaluate(async () => {
      await globalThis.kept.memory.add('local', { text: 'written before', kind: 'fact' });
      await globalThis.kept.memory.close();
      const root = await navigator.storage.getDirectory();
      const folder = await (await root.getDirectoryHandle('ruvllm')).getDirectoryHandle('memory');
      const handle = await folder.getFileHandle('memory.log');
      const { size } = await handle.getFile();
      const stream = await handle.createWritable({ keepExistingData: true });
      await stream.write({ type: 'write', position: size, data: Uint8Array.of(200, 0, 0, 0, 1, 2, 3) });
      await stream.close();
    });
    await openMemory(page);
    const texts = await page.evaluate(async () => {
      await globalThis.kept.memory.add('local', { text: 'written after', kind: 'fact' });
      await globalThis.kept.memory.close();
      const memory = await ruvllm.openMemory({ key: await ruvllm.openDeviceKey() });
      const { results } = await memory.search('local', { text: 'written before after', k: 3 });
      return results.map(({ text }) => text).sort();
    });
    expect(texts).toEqual(['written after', 'written before']);
  });
});
