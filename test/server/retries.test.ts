// Retries of the official clients.
import Anthropic, { InternalServerError, RateLimitError as AnthropicRateLimitError } from '@anthropic-ai/sdk';
import OpenAI, { RateLimitError } from 'openai';
import { afterEach, describe, expect, test } from 'vitest';
import type { ServerOptions } from '../../src/server/app.ts';
import { type Clock, systemClock } from '../../src/core/clock.ts';
import { type DistServer, isServerBuilt, startDistServer } from '../support/dist-server.ts';

let server: DistServer;
afterEach(() => server?.[Symbol.asyncDispose]());

const messages = [{ role: 'user' as const, content: 'hi' }];
const ask = { model: 'random', messages, max_tokens: 1, temperature: 0 };

/** Clients that count requests and record the statuses. */
async function setUp(options: Partial<ServerOptions>) {
  server = await startDistServer(options);
  const statuses: number[] = [];
  const spy: typeof fetch = async (url, init) => {
    const response = await fetch(url, init);
    statuses.push(response.status);
    return response;
  };
  const common = { apiKey: 'none', fetch: spy };
  return {
    statuses,
    openai: (maxRetries: number) => new OpenAI({ ...common, baseURL: `${server.url}/v1`, maxRetries }),
    anthropic: (maxRetries: number) => new Anthropic({ ...common, baseURL: server.url, maxRetries }),
  };
}

/** A stopped clock: what happens within a second must not depend on a busy machine. */
function createHeldClock(): Clock & { run(): void } {
  let startMs: number | null = null;
  const passed = (): number => (startMs === null ? 0 : performance.now() - startMs);
  return {
    now: passed,
    wallClock: () => 1_700_000_000_000 + passed(),
    setTimer: systemClock.setTimer,
    run: () => void (startMs = performance.now()),
  };
}

/** Occupies the only slot until released, however fast the model is. */
async function occupy(): Promise<() => void> {
  const controller = new AbortController();
  const letGo = new Promise((resolve) => controller.signal.addEventListener('abort', resolve));
  const generate = server.model.generateStream.bind(server.model);
  server.model.generateStream = async function* (prompt, options) {
    server.model.generateStream = generate;
    for await (const chunk of generate(prompt, options)) {
      yield chunk;
      await letGo;
    }
  };
  const response = await fetch(`${server.url}/v1/chat/completions`, {
    method: 'POST',
    signal: controller.signal,
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ ...ask, max_tokens: 100, ignore_eos: true, stream: true }),
  });
  await response.body!.getReader().read();
  return () => controller.abort();
}

describe.skipIf(!isServerBuilt)('[S2] retries', () => {
  test('a 429 has a delay, and both clients retry after it', async () => {
    const clock = createHeldClock();
    const { statuses, openai, anthropic } = await setUp({ limits: { burst: 1, requestsPerMinute: 60 }, clock });
    await openai(0).chat.completions.create(ask);
    const refused = await openai(0)
      .chat.completions.create(ask)
      .catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(RateLimitError);
    expect((refused as RateLimitError).headers.get('retry-after')).toBe('1');
    const other = await anthropic(0)
      .messages.create(ask)
      .catch((error: unknown) => error);
    expect(other).toBeInstanceOf(AnthropicRateLimitError);
    expect((other as AnthropicRateLimitError).headers!.get('retry-after')).toBe('1');
    clock.run();
    expect((await openai(3).chat.completions.create(ask)).choices).toHaveLength(1);
    expect((await anthropic(3).messages.create(ask)).content).toHaveLength(1);
    expect(new Set(statuses)).toEqual(new Set([200, 429]));
    expect(statuses.filter((status) => status === 200)).toHaveLength(3);
  });

  test('a full server is 503 for one and 529 for the other, and both retry', async () => {
    const { statuses, openai, anthropic } = await setUp({ limits: { maxRequests: 1 } });
    const leave = await occupy();
    const full = await openai(0)
      .chat.completions.create(ask)
      .catch((error: unknown) => error);
    expect(full).toMatchObject({ status: 503, code: 'overloaded' });
    expect((full as { headers: Headers }).headers.get('retry-after')).toBe('2');
    const overloaded = await anthropic(0)
      .messages.create(ask)
      .catch((error: unknown) => error);
    expect(overloaded).toBeInstanceOf(InternalServerError);
    expect(overloaded).toMatchObject({ status: 529, error: { error: { type: 'overloaded_error' } } });
    const waiting = [openai(3).chat.completions.create(ask), anthropic(3).messages.create(ask)];
    while (statuses.length < 4) await new Promise((resolve) => setTimeout(resolve, 5));
    leave();
    await Promise.all(waiting);
    expect(statuses.slice(0, 4).sort()).toEqual([503, 503, 529, 529]);
    expect(statuses.filter((status) => status === 200)).toHaveLength(2);
  });

  test('clients do not retry invalid requests and internal errors', async () => {
    const { statuses, openai, anthropic } = await setUp({});
    await expect(openai(3).embeddings.create({ model: 'random', input: [] })).rejects.toMatchObject({ status: 400 });
    await expect(anthropic(3).messages.create({ ...ask, model: 'nope' })).rejects.toMatchObject({ status: 404 });
    server.model.generateStream = () => {
      throw new Error('a bug');
    };
    for (const create of [() => openai(3).chat.completions.create(ask), () => anthropic(3).messages.create(ask)]) {
      const failed = (await create().catch((error: unknown) => error)) as { status: number; headers: Headers };
      expect([failed.status, failed.headers.get('x-should-retry')]).toEqual([500, 'false']);
    }
    expect(statuses).toEqual([400, 404, 500, 500]);
  });
});
