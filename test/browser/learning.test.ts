// Learning from feedback in a page: lessons change the answers, survive a reload, and leave other answers as they are.
import type { Page } from 'playwright-core';
import { describe, expect, test } from 'vitest';
import { isHeldOut } from '../../src/learning/sona/examples.ts';
import { campaign } from '../support/campaign.ts';
import { openLibraryPage, waitForLibrary } from './support/library-page.ts';
import { canRun, startSite, STORIES, TINY } from './support/site.ts';

const PROMPT = 'Once upon a time there was a zog. The zog was';
const CONTROL = 'Lily and her friend Ben went to the park. They';

/** A third of the steps that the default needs; the control question is still answered as before. */
const QUICK = 0.05;

/** Opens memory, learning and the model, and keeps them in the page. */
const open = (page: Page, source: string, instantLearningRate = 0.02) =>
  page.evaluate(
    async ([from, rate]) => {
      const memory = await ruvllm.openMemory({ key: await ruvllm.openDeviceKey() });
      const learning = await ruvllm.openLearning({
        memory,
        corrections: false,
        instantLearningRate: rate,
        fisherSamples: 4,
        numLayers: 1,
        // No limit that a slow machine could reach before everything is learned.
        backgroundLimitMs: 600_000,
      });
      const model = await ruvllm.loadModel(from, { memory, learning, modelName: 'stories', maxContext: 256 });
      globalThis.kept = { model, memory, learning };
    },
    [source, instantLearningRate] as const,
  );

const ask = (page: Page, prompt: string, options: object = {}): Promise<string> =>
  page.evaluate(
    async ([text, more]) =>
      (await globalThis.kept.model.generate(text, { temperature: 0, maxTokens: 6, ...more })).text,
    [prompt, options] as const,
  );

/** One request with a correction; returns how the instant loop ended. */
const correct = (page: Page, prompt: string, correction: string, requestId: string = crypto.randomUUID()) =>
  page.evaluate(
    async ([text, right, id]) => {
      const { model, learning } = globalThis.kept;
      await model.generate(text, { temperature: 0, maxTokens: 6, requestId: id });
      await learning.settle();
      const { learned } = await learning.feedback('local', { requestId: id, correction: right });
      const { outcome, lossBefore, lossAfter } = await learned;
      return { outcome, lossBefore, lossAfter };
    },
    [prompt, correction, requestId] as const,
  );

async function teach(page: Page): Promise<string[]> {
  const outcomes: string[] = [];
  while (outcomes.length < 24 && outcomes.at(-1) !== 'already-known') {
    outcomes.push((await correct(page, PROMPT, ' purple')).outcome);
  }
  return outcomes;
}

/** Training with one thread takes minutes beside other tests. */
const isLong = campaign({ short: false, long: true });
if (canRun && !isLong)
  console.log('the background loop in a page is skipped: it takes minutes, npm run test:long runs it');

describe.skipIf(!canRun)('learning in a page', () => {
  test('a correction becomes the answer, also after a reload; a control question and other tenants do not change', async () => {
    await using site = await startSite({ files: { 'stories.gguf': STORIES } });
    await using watched = await openLibraryPage(site);
    const { page } = watched;
    await open(page, '/files/stories.gguf', QUICK);
    const [plain, control] = [await ask(page, PROMPT), await ask(page, CONTROL, { maxTokens: 40 })];
    expect(plain).not.toContain('purple');

    const outcomes = await teach(page);
    expect(outcomes[0]).toBe('learned');
    expect(outcomes.at(-1)).toBe('already-known');
    const isTaught = async (): Promise<void> => {
      expect(await ask(page, PROMPT)).toBe(' purple'); // then the end of the text
      expect(await ask(page, CONTROL, { maxTokens: 40 })).toBe(control);
      expect(await ask(page, PROMPT, { tenant: 'bob' })).toBe(plain);
      expect(await ask(page, PROMPT, { adapter: null })).toBe(plain);
    };
    await isTaught();

    await page.reload(); // without close(): a closed tab does not close either
    await waitForLibrary(page);
    await open(page, 'stories.gguf', QUICK);
    await isTaught();
    const onDisk = await page.evaluate(async () => {
      const readAll = async (folder: FileSystemDirectoryHandle): Promise<string> => {
        let text = '';
        for await (const entry of (folder as unknown as { values(): AsyncIterable<FileSystemHandle> }).values()) {
          if (entry.kind === 'directory') text += await readAll(entry as FileSystemDirectoryHandle);
          else if (!entry.name.endsWith('.gguf'))
            text += await (await (entry as FileSystemFileHandle).getFile()).text();
        }
        return text;
      };
      return readAll(await navigator.storage.getDirectory());
    });
    expect(onDisk.length).toBeGreaterThan(1000);
    expect(onDisk).not.toContain('purple');

    await page.evaluate(() => globalThis.kept.learning.rollback('local', 'stories', 0));
    expect(await ask(page, PROMPT)).toBe(plain);
    expect(await page.evaluate(() => globalThis.violations)).toEqual([]);
  });

  test('a learning worker that ends fails one lesson, and the next one starts another', async () => {
    await using site = await startSite({ files: { 'stories.gguf': TINY } });
    await using watched = await openLibraryPage(site);
    const { page } = watched;
    await open(page, '/files/stories.gguf');
    expect((await correct(page, PROMPT, ' purple')).outcome).toBe('learned');
    const worker = page.workers().find((one) => one.url().endsWith('learning-worker.js'))!;
    void worker.evaluate(() => (globalThis as unknown as { close(): void }).close()).catch(() => {});
    const outcomes: string[] = [];
    // The page may send a lesson before it hears that the worker has ended; that one is not learned.
    await expect
      .poll(async () => {
        outcomes.push((await correct(page, PROMPT, ' purple')).outcome);
        return outcomes.at(-1);
      })
      .toBe('learned');
    expect(outcomes.slice(0, -1).every((outcome) => outcome === 'skipped')).toBe(true);
    expect(watched.complaints.splice(0).every((line) => line.includes('learning from one answer failed'))).toBe(true);
  });

  test.skipIf(!isLong)(
    'the background loop trains an adapter in the page, which is used and found after a reload',
    async () => {
      await using site = await startSite({ files: { 'stories.gguf': STORIES } });
      await using watched = await openLibraryPage(site);
      const { page } = watched;
      await open(page, '/files/stories.gguf');
      const names = ['Anna', 'Ben', 'Carl', 'Dora', 'Emil', 'Finn', 'Gina', 'Hugo', 'Ida', 'Jack', 'Kim', 'Leo', 'Mia', 'Nora', 'Otto', 'Pia']; // prettier-ignore
      const promptOf = (name: string): string => `${name} met a zorblin. The zorblin lived in`;
      for (const [i, name] of names.entries()) {
        await correct(page, promptOf(name), ' a glass tower under the lake.', idOf(i % 4 === 0));
      }
      const { reason, version } = await page.evaluate(async () => {
        const { reason: why, version: made } = await globalThis.kept.learning.sona.backgroundConsolidate(
          'local',
          'stories',
        );
        return { reason: why, version: made === null ? null : { version: made.version, isAccepted: made.isAccepted } };
      });
      expect(reason).toContain('the held-out loss falls');
      expect(version).toEqual({ version: 1, isAccepted: true });
      const isTaught = async (): Promise<void> => {
        expect(await ask(page, promptOf('Mister Green'))).toMatch(/^ a glass tower/);
        expect(await ask(page, promptOf('Mister Green'), { adapter: null })).not.toContain('glass');
      };
      await isTaught();
      await page.reload();
      await waitForLibrary(page);
      await open(page, 'stories.gguf');
      await isTaught();
    },
  );
});

/** Request ids decide which are held out; by chance there could be none. */
function idOf(willBeHeldOut: boolean): string {
  for (;;) {
    const id = crypto.randomUUID();
    if (isHeldOut(id) === willBeHeldOut) return id;
  }
}
