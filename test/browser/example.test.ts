// The example site under its strict policy: drop a model, chat, cut the network, reload.
import { createHash } from 'node:crypto';
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Page } from 'playwright-core';
import { describe, expect, onTestFinished, test } from 'vitest';
import { countViolations } from '../dashboard/support/axe.ts';
import { openPage } from '../dashboard/support/open-page.ts';
import { canRun, readTiny, startSite, storiesOf, TINY } from './support/site.ts';

const READY = /\.gguf is ready/;
const status = (page: Page) => page.getByRole('status').textContent();
const problem = (page: Page) => page.locator('#problem').textContent(); // a role would wait for one that is hidden

async function send(page: Page, text: string): Promise<string> {
  const before = await page.locator('#messages li').count();
  await page.getByLabel('Message').fill(text);
  await page.getByRole('button', { name: 'Send' }).click();
  await expect.poll(() => page.locator('#messages li').count()).toBe(before + 2);
  await expect.poll(() => page.locator('#send').isEnabled()).toBe(true);
  return (await page.locator('#messages li').last().textContent())!;
}

describe.skipIf(!canRun)('the example site', () => {
  test.each([true, false])(
    'chats with a dropped model, offline, and knows it after a reload; isolated: %s',
    async (isIsolated) => {
      await using site = await startSite({ isIsolated });
      await using watched = await openPage(site.url);
      const { page } = watched;
      await expect.poll(() => status(page)).toBe('Choose a model to begin.');
      expect(await countViolations(page)).toBe(0);
      await page.getByLabel('Drop a GGUF file here').setInputFiles(TINY);
      await expect.poll(() => status(page)).toMatch(READY);
      expect(await status(page)).toContain(isIsolated ? 'threads' : '1 thread (the page is not cross-origin isolated)');
      await page.getByLabel('A note to remember').fill('Lily has a red ball.');
      await page.getByRole('button', { name: 'Remember' }).click();
      await expect.poll(() => page.locator('#notes li').count()).toBe(1);
      const story =
        'Once upon a time there was a little girl who lived in a house near the forest with her big brown dog';
      const answer = await send(page, story);
      expect(await problem(page)).toBe('');
      expect(answer.length).toBeGreaterThan(20);

      await page.context().setOffline(true);
      await send(page, 'Tom and his dog');
      await page.reload();
      await expect.poll(() => status(page)).toMatch(READY);
      expect(await page.locator('#messages li').allTextContents()).toMatchObject([
        story,
        answer,
        'Tom and his dog',
        expect.any(String),
      ]);
      expect(await page.locator('#notes li').allTextContents()).toEqual(['Lily has a red ball.']);
      await send(page, story);
      const [, cached] = /^(\d+) of (\d+) prompt tokens/.exec((await page.locator('#timing').textContent())!)!;
      expect(Number(cached)).toBeGreaterThanOrEqual(16);
      expect(await countViolations(page)).toBe(0);
    },
  );

  test('is taught an answer, and still knows it after a reload; a control question is answered as before', async () => {
    await using site = await startSite();
    await using watched = await openPage(site.url);
    const { page } = watched;
    const folder = mkdtempSync(join(tmpdir(), 'ruvllm-example-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const path = join(folder, 'stories.gguf');
    writeFileSync(path, storiesOf(64));
    await page.getByLabel('Drop a GGUF file here').setInputFiles(path);
    await expect.poll(() => status(page)).toMatch(READY);
    const [question, control] = [
      'Once upon a time there was a zog. The zog was',
      'Lily and her friend Ben went to the park. They',
    ];
    const before = await send(page, question);
    // Later words of a long story may differ where two were almost equally likely.
    const sendControl = async (): Promise<string> => (await send(page, control)).slice(0, 200);
    const unrelated = await sendControl();
    expect(before).not.toMatch(/^ purple/);
    await send(page, question);
    await page.getByLabel('The right answer instead').fill('purple');
    await page.getByRole('button', { name: 'Teach' }).click();
    await expect.poll(() => page.locator('#lesson').textContent()).toMatch(/^Step \d+: (?!learned)/);
    expect(await page.locator('#lesson').textContent()).toMatch(/^Step \d+: already-known/);
    await expect.poll(() => page.locator('#send').isEnabled()).toBe(true);
    expect(await send(page, question)).toMatch(/^ purple/);
    expect(await sendControl()).toBe(unrelated);
    expect(await countViolations(page)).toBe(0);

    await page.reload();
    await expect.poll(() => status(page)).toMatch(READY);
    expect(await send(page, question)).toMatch(/^ purple/);
    expect(await sendControl()).toBe(unrelated);
    await page.getByRole('button', { name: 'Forget all lessons' }).click();
    await expect.poll(() => page.locator('#lesson').textContent()).toBe('The model answers as its file does.');
    expect(await send(page, question)).toBe(before);
  });

  test('says in words that a file is damaged, that another tab is open, and that the engine ended; nothing is lost', async () => {
    await using site = await startSite();
    await using watched = await openPage(site.url);
    const { page } = watched;
    await expect.poll(() => status(page)).toBe('Choose a model to begin.');
    const cut = {
      name: 'cut.gguf',
      mimeType: 'application/octet-stream',
      buffer: Buffer.from(readTiny().subarray(0, 500_000)),
    };
    await page.getByLabel('Drop a GGUF file here').setInputFiles(cut);
    await expect.poll(() => problem(page)).toMatch(/^This is not a complete GGUF file\. Nothing was stored\./);
    expect(await countViolations(page)).toBe(0);
    await page.getByLabel('Drop a GGUF file here').setInputFiles(TINY);
    await expect.poll(() => status(page)).toMatch(READY);
    await send(page, 'Once upon a time');

    const tab = await page.context().newPage();
    await tab.goto(site.url);
    await expect.poll(() => problem(tab)).toMatch(/^Another tab has this page open\. Close that tab/);
    await tab.close();

    const engine = page.workers().find((worker) => worker.url().endsWith('engine-worker.js'))!;
    void engine.evaluate(() => (globalThis as unknown as { close(): void }).close()).catch(() => {});
    await expect.poll(() => problem(page)).toMatch(/^The engine ended unexpectedly\. Your conversation is kept/);
    await page.getByRole('button', { name: 'Load stories260K-f32.gguf' }).click();
    await expect.poll(() => status(page)).toMatch(READY);
    expect(await page.locator('#messages li').count()).toBe(2);
  });

  test('its own server isolates the page', async () => {
    const script = fileURLToPath(new URL('../../examples/browser/serve.mjs', import.meta.url));
    const server = spawn(process.execPath, [script, '0'], { stdio: ['ignore', 'pipe', 'inherit'] });
    try {
      const url = await new Promise<string>((resolve) =>
        server.stdout.once('data', (text) => resolve(String(text).trim())),
      );
      await using watched = await openPage(url);
      await expect.poll(() => status(watched.page)).toBe('Choose a model to begin.');
      expect(await watched.page.evaluate(() => crossOriginIsolated)).toBe(true);
      const response = await fetch(`${url}ruvllm/index.js`);
      expect(
        createHash('sha256')
          .update(await response.text())
          .digest('hex'),
      ).toHaveLength(64);
      expect((await fetch(`${url}../../package.json`)).status).toBe(404);
    } finally {
      server.kill();
    }
  });
});
