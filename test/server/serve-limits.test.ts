// Batch sizes, waiting requests and audit retention, set by flags of `ruvllm serve`.
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { isServerBuilt } from '../support/dist-server.ts';
import { createServeFolder, type ServeFolder } from '../support/serve-process.ts';

let folder: ServeFolder;
beforeAll(() => {
  folder = createServeFolder({ contextLength: 4096 });
});
afterEach(async () => {
  folder.killAll();
  await folder.here.stopAll();
});
afterAll(() => folder.dispose());

interface Slot {
  readonly numRunning: number;
  readonly numWaiting: number;
  readonly numSteps: number;
}

const ask = (url: string, options: object): Promise<Response> =>
  fetch(`${url}/v1/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'tiny', prompt: 'hi', max_tokens: 1, ...options }),
  });

const slotOf = async (url: string): Promise<Slot> =>
  ((await (await fetch(`${url}/slots`)).json()) as { slots: [Slot] }).slots[0];

async function until(isDone: () => Promise<boolean>): Promise<void> {
  while (!(await isDone()));
}

describe.skipIf(!isServerBuilt)('ruvllm serve', () => {
  test('--max-sequences bounds the batch, --max-waiting the queue', async () => {
    const { url } = await folder.here.start(folder.model, '--max-sequences', '2', '--max-waiting', '1', '--no-memory');
    const stop = new AbortController();
    const startLong = (): void => {
      const body = JSON.stringify({ model: 'tiny', prompt: 'hi', max_tokens: 4000, ignore_eos: true, stream: true });
      const headers = { 'content-type': 'application/json' };
      void fetch(`${url}/v1/completions`, { method: 'POST', headers, body, signal: stop.signal }).catch(() => {});
    };
    for (const [numRunning, numWaiting] of [
      [1, 0],
      [2, 0],
      [2, 1],
    ]) {
      startLong();
      await until(async () => {
        const slot = await slotOf(url);
        expect(slot.numRunning).toBeLessThanOrEqual(2);
        return slot.numRunning === numRunning && slot.numWaiting === numWaiting;
      });
    }
    const refused = await ask(url, {});
    expect([refused.status, Number(refused.headers.get('retry-after'))]).toEqual([503, 2]);
    expect(await refused.json()).toMatchObject({
      error: { code: 'overloaded', message: '1 requests are waiting; the limit is 1' },
    });
    stop.abort();
  });

  test('--batch-tokens splits a prompt into steps', async () => {
    const prompt = 'a b c d e f g h '.repeat(16);
    const stepsWith = async (...args: string[]): Promise<{ numSteps: number; numTokens: number }> => {
      const { url } = await folder.here.start(folder.model, '--no-memory', ...args);
      const before = (await slotOf(url)).numSteps;
      const { usage } = (await (await ask(url, { prompt })).json()) as { usage: { prompt_tokens: number } };
      return { numSteps: (await slotOf(url)).numSteps - before, numTokens: usage.prompt_tokens };
    };
    const { numSteps, numTokens } = await stepsWith('--batch-tokens', '16');
    expect(numTokens).toBeGreaterThan(64);
    expect(numSteps).toBe(Math.ceil(numTokens / 16));
    folder.environment['RUVLLM_BATCH_TOKENS'] = '32';
    expect((await stepsWith()).numSteps).toBe(Math.ceil(numTokens / 32));
    delete folder.environment['RUVLLM_BATCH_TOKENS'];
  });

  test.each([
    ['--max-sequences', '0', '--max-sequences must be an integer from 1 to 256, got 0'],
    ['--batch-tokens', '9000', '--batch-tokens must be an integer from 1 to 8192, got 9000'],
    ['--max-waiting', '2000000', '--max-waiting must be an integer from 1 to 1048576, got 2000000'],
    ['--audit-retention', '0d', '--audit-retention must be from 1m to 36500d, such as 12h, 7d or 2w, got "0d"'],
  ])('refuses %s %s', async (flag, value, message) => {
    const { status, stdout } = await folder.here.run('serve', folder.model, flag, value);
    expect([status, JSON.parse(stdout)]).toMatchObject([2, { error: { message } }]);
  });

  test('--audit-retention deletes older entries, which are otherwise archived', async () => {
    const numExported = async (url: string): Promise<number> =>
      (JSON.parse((await folder.here.run('audit', 'export', '--url', url)).stdout) as { count: number }).count;
    const numSearchable = async (url: string): Promise<number> =>
      (JSON.parse((await folder.here.run('audit', 'search', '--url', url)).stdout) as { entries: object[] }).entries
        .length;
    const first = await folder.start(folder.model);
    expect((await ask(first.url, {})).status).toBe(200);
    await until(async () => (await numExported(first.url)) === 1);
    first.process.kill('SIGTERM');
    await first.exit;
    // Eight days later, with the memory's maintenance every 100 ms.
    const script = `const now = Date.now; Date.now = () => now() + 8 * 86_400_000;
      const wait = globalThis.setTimeout;
      globalThis.setTimeout = (work, ms, ...args) => wait(work, ms === 60_000 ? 100 : ms, ...args);`;
    folder.environment['NODE_OPTIONS'] = `--import=data:text/javascript,${encodeURIComponent(script)}`;
    try {
      const second = await folder.start(folder.model);
      await until(async () => (await numSearchable(second.url)) === 0);
      expect(await numExported(second.url)).toBe(1);
      second.process.kill('SIGTERM');
      await second.exit;
      const third = await folder.start(folder.model, '--audit-retention', '7d');
      await until(async () => (await numExported(third.url)) === 0);
      expect((await folder.here.run('audit', 'verify', '--url', third.url)).status).toBe(0);
    } finally {
      delete folder.environment['NODE_OPTIONS'];
    }
  });
});
