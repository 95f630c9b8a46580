// What the official clients do by themselves when they are told to come back.
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

/** Clients that count what they send; the statuses are what came back. */
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

/** Time that stands still until it is let run: what comes within a second of what is not for a busy machine to say. */
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

/** Takes the only place until it is let go, however quick the model is. */
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
  test('a 429 says when, and both clients come back then', async () => {
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

  test('a full server is a 503 for one and a 529 for the other, and neither gives up', async () => {
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

  test('what cannot succeed is not tried again: a mistake of theirs, and a bug of ours', async () => {
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
