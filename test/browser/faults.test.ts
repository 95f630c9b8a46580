// The storage of a page when another tab has it, when it is full, when a worker ends, and when pages are damaged or too many.
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { Page } from 'playwright-core';
import { describe, expect, test } from 'vitest';
import { openLibraryPage, openSecondTab, waitForLibrary } from './support/library-page.ts';
import { canRun, type Site, startSite, STORIES, TINY } from './support/site.ts';

const ADDRESS = '/files/stories.gguf';
const GREEDY = { maxTokens: 16, temperature: 0, seed: 1 } as const;
const story = (name: string): string =>
  `${`${name} and her friend Ben went to the park to play with the red ball. `.repeat(6)}Then`;

/** Ends a worker without an error, as a browser does that needs memory. */
async function endWorker(page: Page, script: string): Promise<void> {
  const worker = page.workers().find((one) => one.url().endsWith(script))!;
  const closed = worker.evaluate(() => (globalThis as unknown as { close(): void }).close());
  await Promise.race([closed.catch(() => {}), new Promise((resolve) => worker.once('close', resolve))]);
}

async function setQuota(page: Page, site: Site, quotaSize: number | null): Promise<void> {
  // Not detached: that would end the override.
  const devtools = await page.context().newCDPSession(page);
  const { origin } = new URL(site.url);
  await devtools.send('Storage.overrideQuotaForOrigin', { origin, ...(quotaSize === null ? {} : { quotaSize }) });
}
const usageOf = (page: Page): Promise<number> => page.evaluate(async () => (await navigator.storage.estimate()).usage!);

/** Loads the model with stored pages and keeps it. */
const load = (page: Page, source: string, limitBytes?: number) =>
  page.evaluate(
    async ([from, limit]) => {
      const key = await ruvllm.openDeviceKey();
      const kvSpill = limit === null ? { key } : { key, limitBytes: limit };
      try {
        globalThis.kept = { ...globalThis.kept, model: await ruvllm.loadModel(from, { kvSpill }) };
        return null;
      } catch (error) {
        const { code, message } = error as { code: string; message: string };
        return { code, message };
      }
    },
    [source, limitBytes ?? null] as const,
  );
const generate = (page: Page, prompt: string) =>
  page.evaluate(
    async ([text, greedy]) => {
      const { tokenIds, usage } = await globalThis.kept.model.generate(text, greedy);
      return { tokenIds, cachedTokens: usage.cachedTokens };
    },
    [prompt, GREEDY] as const,
  );
/** Ends the engine, which stores its pages. */
const dispose = (page: Page) => page.evaluate(() => globalThis.kept.model.dispose());

const openMemory = (page: Page) =>
  page.evaluate(async () => {
    globalThis.kept = { ...globalThis.kept, memory: await ruvllm.openMemory({ key: await ruvllm.openDeviceKey() }) };
  });
const addText = (page: Page, text: string) =>
  page.evaluate(
    (given) =>
      globalThis.kept.memory.add('local', { text: given, kind: 'fact' }).then(
        () => null,
        ({ code, message }) => ({ code, message }) as { code: string; message: string },
      ),
    text,
  );
const countTexts = (page: Page) =>
  page.evaluate(() => globalThis.kept.memory.store.count('local', { kinds: ['fact'] }));

describe.skipIf(!canRun)('faults of the storage of a page', () => {
  test('the stored pages of a model are open in one tab; another one is told, and gets them when that is closed', async () => {
    await using site = await startSite({ files: { 'stories.gguf': TINY } });
    await using watched = await openLibraryPage(site);
    const { page } = watched;
    const tab = await openSecondTab(watched);
    await waitForLibrary(tab);
    expect(await load(tab, ADDRESS)).toBeNull();
    const first = await generate(tab, story('Lily'));
    expect(await load(page, 'stories.gguf')).toEqual({
      code: 'in_use',
      message: expect.stringContaining('another tab has it open'),
    });
    // Refused before the model is read, and without the pages it can be loaded.
    const plain = await page.evaluate(
      async ([text, greedy]) => {
        const model = await ruvllm.loadModel('stories.gguf');
        const { tokenIds } = await model.generate(text, greedy);
        await model.dispose();
        return tokenIds;
      },
      [story('Lily'), GREEDY] as const,
    );
    expect(plain).toEqual(first.tokenIds);
    await dispose(tab);
    await tab.close();
    await expect.poll(() => load(page, 'stories.gguf')).toBeNull();
    const again = await generate(page, story('Lily'));
    expect(again.tokenIds).toEqual(first.tokenIds);
    expect(again.cachedTokens).toBeGreaterThan(32);
  });

  test('a text that does not fit is told with disk_full; all before it are kept, and it is stored with the next one when there is space', async () => {
    await using site = await startSite();
    await using watched = await openLibraryPage(site);
    const { page } = watched;
    await openMemory(page);
    expect(await addText(page, 'written before')).toBeNull();
    await setQuota(page, site, (await usageOf(page)) + 200_000);
    const large = 'a long text about many things '.repeat(2000);
    let numAdded = 1;
    let failure: { code: string; message: string } | null = null;
    for (; failure === null && numAdded < 400; numAdded++) failure = await addText(page, `${numAdded} ${large}`);
    expect(failure).toMatchObject({ code: 'disk_full' });
    numAdded--; // the one that did not fit
    // Half a record would hide the later ones.
    await setQuota(page, site, null);
    expect(await addText(page, 'written after')).toBeNull();
    expect(await countTexts(page)).toBe(numAdded + 2);
    await page.reload();
    await waitForLibrary(page);
    await openMemory(page);
    expect(await countTexts(page)).toBe(numAdded + 2);
    expect(watched.complaints).toEqual([]);
  });

  test('pages that do not fit are not stored: the answers stay right, it is said once, and nothing damaged is found later', async () => {
    await using site = await startSite({ files: { 'stories.gguf': TINY } });
    await using watched = await openLibraryPage(site);
    const { page } = watched;
    expect(await load(page, ADDRESS)).toBeNull();
    const right = [await generate(page, story('Lily')), await generate(page, story('Mia'))];
    await dispose(page);
    const removePages = () =>
      page.evaluate(async () => {
        const root = await (await navigator.storage.getDirectory()).getDirectoryHandle('ruvllm');
        return root.removeEntry('kv', { recursive: true }).then(
          () => null,
          (error: Error) => error.name,
        );
      });
    // The browser gives a file back a moment after the worker that held it has ended.
    await expect.poll(removePages).toBeNull();
    await setQuota(page, site, (await usageOf(page)) + 1000);
    expect(await load(page, 'stories.gguf')).toBeNull();
    expect(await generate(page, story('Lily'))).toEqual(right[0]);
    expect(await generate(page, story('Mia'))).toEqual(right[1]);
    const { spill } = await page.evaluate(async () => (await globalThis.kept.model.stats()).cache);
    await dispose(page);
    await setQuota(page, site, null);
    const said = watched.complaints.splice(0);
    expect(said).toEqual([expect.stringContaining('KV pages are not stored')]);
    expect(spill!.numCorrupt).toBe(0);
    expect(await load(page, 'stories.gguf')).toBeNull();
    const after = await generate(page, story('Lily'));
    expect(after.tokenIds).toEqual(right[0]!.tokenIds);
    await dispose(page);
  });

  test('the pages of a model stay within their limit, on disk and in memory, and the last used ones are kept', async () => {
    await using site = await startSite({ files: { 'stories.gguf': TINY } });
    await using watched = await openLibraryPage(site);
    const { page } = watched;
    const limitBytes = 1 << 19; // all stories take 800 kB
    expect(await load(page, ADDRESS, limitBytes)).toBeNull();
    const names = ['Lily', 'Mia', 'Anna', 'Sue', 'Zoe', 'Kim', 'Eve', 'Amy'];
    const right = new Map<string, readonly number[]>();
    for (const name of names) right.set(name, (await generate(page, story(name))).tokenIds);
    await dispose(page);
    const numBytes = await page.evaluate(async () => {
      const root = await (await navigator.storage.getDirectory()).getDirectoryHandle('ruvllm');
      const folder = await root.getDirectoryHandle('kv');
      let sum = 0;
      for await (const file of (folder as unknown as { values(): AsyncIterable<FileSystemFileHandle> }).values()) {
        sum += (await file.getFile()).size;
      }
      return sum;
    });
    expect(numBytes).toBeGreaterThan(limitBytes / 4);
    await page.reload();
    await waitForLibrary(page);
    expect(await load(page, 'stories.gguf', limitBytes)).toBeNull();
    const { spill } = await page.evaluate(async () => (await globalThis.kept.model.stats()).cache);
    expect(spill!.sizeBytes).toBeGreaterThan(0);
    expect(spill!.sizeBytes).toBeLessThanOrEqual(limitBytes);
    const last = await generate(page, story('Amy'));
    expect(last.cachedTokens).toBeGreaterThan(32);
    for (const name of names) expect((await generate(page, story(name))).tokenIds).toEqual(right.get(name));
  });

  test('a damaged page is not used: the prompt is computed again, with the same tokens', async () => {
    await using site = await startSite({ files: { 'stories.gguf': TINY } });
    await using watched = await openLibraryPage(site);
    const { page } = watched;
    expect(await load(page, ADDRESS)).toBeNull();
    const right = await generate(page, story('Lily'));
    await dispose(page);
    await page.evaluate(async () => {
      const root = await (await navigator.storage.getDirectory()).getDirectoryHandle('ruvllm');
      const folder = await root.getDirectoryHandle('kv');
      for await (const handle of (folder as unknown as { values(): AsyncIterable<FileSystemFileHandle> }).values()) {
        const bytes = new Uint8Array(await (await handle.getFile()).arrayBuffer());
        // Behind the header and the record that tells a wrong key from damage.
        for (let at = 2000; at < bytes.length; at += 4096) bytes[at]! ^= 1;
        const stream = await handle.createWritable();
        await stream.write(bytes);
        await stream.close();
      }
    });
    await page.reload();
    await waitForLibrary(page);
    expect(await load(page, 'stories.gguf')).toBeNull();
    const again = await generate(page, story('Lily'));
    expect(again.tokenIds).toEqual(right.tokenIds);
    const { spill } = await page.evaluate(async () => (await globalThis.kept.model.stats()).cache);
    expect(spill!.numCorrupt).toBeGreaterThan(0);
  });

  test('a memory whose worker ends fails its calls instead of waiting; opened again, it has every acknowledged text', async () => {
    await using site = await startSite();
    await using watched = await openLibraryPage(site);
    const { page } = watched;
    await openMemory(page);
    expect(await addText(page, 'written before')).toBeNull();
    await endWorker(page, 'log-worker.js');
    // Calls may arrive before the browser tells that it has ended; none of them may wait forever.
    expect(await addText(page, 'written too late')).toMatchObject({
      code: 'io',
      message: expect.stringContaining('ended'),
    });
    await page.reload();
    await waitForLibrary(page);
    await openMemory(page);
    expect(await countTexts(page)).toBe(1);
    // The memory reports that its store has gone.
    for (const line of watched.complaints.splice(0)) expect(line).toContain('RuvLLM: ');
  });

  test('an import whose worker ends fails, and the next attempt continues it', async () => {
    const bytes = readFileSync(STORIES);
    let isFirst = true;
    await using site = await startSite({
      files: { 'stories.gguf': STORIES },
      answer(request, response) {
        if (!isFirst || !request.url!.startsWith(ADDRESS)) return false;
        isFirst = false;
        const headers = { 'content-length': bytes.length, etag: `"${bytes.length}"`, 'cross-origin-resource-policy': 'same-origin' }; // prettier-ignore
        response.writeHead(200, headers);
        response.write(bytes.subarray(0, 18 << 20));
        return true; // and waits
      },
    });
    await using watched = await openLibraryPage(site);
    const { page } = watched;
    const failure = page.evaluate(
      (source) =>
        ruvllm
          .storeModel(source, {
            onProgress: ({ doneBytes }) => void (document.title = String(doneBytes)),
          })
          .then(
            () => null,
            ({ code, isRetryable, message }) => ({ code, isRetryable, message }),
          ),
      ADDRESS,
    );
    await expect.poll(async () => Number(await page.title())).toBeGreaterThan(17 << 20);
    await endWorker(page, 'storage-worker.js');
    expect(await failure).toMatchObject({
      code: 'io',
      isRetryable: true,
      message: expect.stringContaining('was ended by the browser'),
    });
    site.requests.length = 0;
    const stored = await page.evaluate((source) => ruvllm.storeModel(source), ADDRESS);
    expect(stored.sha256).toBe(createHash('sha256').update(bytes).digest('hex'));
    expect(site.requests.some((line) => /bytes=1\d{7}-/.test(line))).toBe(true);
  });

  test('other bytes than the server names, or than a header names, are refused and not kept', async () => {
    const wrong = createHash('sha256').update('other').digest('base64');
    const right = createHash('sha256').update(readFileSync(TINY)).digest('base64');
    let digest = wrong;
    const seen: (string | undefined)[] = [];
    await using site = await startSite({
      answer(request, response) {
        if (!request.url!.startsWith(ADDRESS)) return false;
        seen.push(request.headers.authorization);
        response.writeHead(200, {
          'repr-digest': `sha-256=:${digest}:`,
          'cross-origin-resource-policy': 'same-origin',
        });
        response.end(readFileSync(TINY));
        return true;
      },
    });
    await using watched = await openLibraryPage(site);
    const store = () =>
      watched.page.evaluate(
        (source) =>
          ruvllm.storeModel(source, { headers: { authorization: 'Bearer zanzibar' } }).then(
            ({ name }) => name,
            ({ code }) => code as string,
          ),
        ADDRESS,
      );
    expect(await store()).toBe('hash_mismatch');
    expect(await watched.page.evaluate(() => ruvllm.listModels())).toEqual([]);
    digest = right;
    expect(await store()).toBe('stories.gguf');
    expect(seen).toEqual(['Bearer zanzibar', 'Bearer zanzibar']);
    const records = await watched.page.evaluate(async () => JSON.stringify(await ruvllm.listModels()));
    expect(records).not.toContain('zanzibar');
  });
});
