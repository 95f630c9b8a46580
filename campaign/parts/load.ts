// Two hundred streams of four tenants of unequal size, until 5,000 have ended: no error, a fair share for each, an answer of /health within
// a second, flat memory. Then chats beside 2,000 clients that watch events, more requests than the server takes, and a shutdown in the
// middle of streams.
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ServeProcess } from '../../test/support/serve-process.ts';
import { type Part, percentileOf, shorten } from '../part.ts';
import { ask, request, stream } from '../support/client.ts';
import { startHealthReader } from '../support/health-reader.ts';
import { createSite, kill, type Site } from '../support/site.ts';
import { holdWatchers, whyTooMany } from '../support/watchers.ts';

/** One tenant asks for much more than its share. */
const SHARES = [0.7, 0.1, 0.1, 0.1] as const;
const DEFAULT_STREAMS = 200;
const MIN_SHARE = 0.8;
const MAX_GROWTH = 1.15;
/** Requests, watching clients and chats, for each stream of the load. */
const [REQUESTS_PER_STREAM, WATCHERS_PER_STREAM, CHATS_PER_STREAM] = [25, 10, 1];
/** Of the last half of the samples of memory; fewer samples say nothing. */
const MAX_SLOPE = 0.01;
const MIN_SAMPLES = 30;
/** Below the limit of a tenant, and with the watchers below the connections of a server. */
const CHATS_AT_ONCE = 8;
const LIMIT_HEALTH_MS = 1000;

const residentBytes = ({ process: { pid } }: ServeProcess): number | null => {
  try {
    return Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]) * 1024;
  } catch {
    return null;
  }
};
/** How much the last half of the values grows by, as a share of their mean: the slope of the line through them. */
export function growthOfLastHalf(values: readonly number[]): number {
  const half = values.slice(Math.floor(values.length / 2));
  const middle = (half.length - 1) / 2;
  const mean = half.reduce((sum, value) => sum + value, 0) / half.length;
  const covariance = half.reduce((sum, value, i) => sum + (i - middle) * (value - mean), 0);
  const variance = half.reduce((sum, _, i) => sum + (i - middle) ** 2, 0);
  return variance === 0 ? 0 : ((covariance / variance) * half.length) / mean;
}

const bodyOf = (n: number, maxTokens: number): object => ({ model: 'm', prompt: `Once upon a time ${n}`, max_tokens: maxTokens, seed: n, ignore_eos: true, stream: true }); // prettier-ignore

async function createTokens(url: string, site: Site): Promise<string[]> {
  const tokens: string[] = [];
  for (const [i] of SHARES.entries()) {
    const { body } = await ask(url, '/admin/keys', { token: site.tokens.admin, body: { name: `tenant-${i}`, tenant: `tenant-${i}`, scopes: ['inference'] } }); // prettier-ignore
    tokens.push(body['token'] as string);
  }
  return tokens;
}

async function runStreams(
  server: ServeProcess,
  tokens: readonly string[],
  numStreams: number,
  { ms, maxDone = Infinity }: { readonly ms: number; readonly maxDone?: number },
  problems: string[],
) {
  const numTokens = SHARES.map(() => 0);
  const [memory, firstBytes]: [number[], number[]] = [[], []];
  let [numDone, number] = [0, 0];
  const health = startHealthReader(server.url);
  const over = new AbortController();
  const client = async (tenant: number): Promise<void> => {
    while (!over.signal.aborted) {
      const asked = performance.now();
      const answer = await stream(server.url, '/v1/completions', { token: tokens[tenant]!, body: bodyOf(number++, 32), timeoutMs: 300_000 }); // prettier-ignore
      if (!answer.isWhole) problems.push(`a stream ended early: ${answer.status} ${answer.text.slice(-200)}`);
      if (answer.times.length > 0) firstBytes.push(answer.times[0]! - asked);
      // Streams that end later do not count: they would favour the tenant with more streams.
      if (!over.signal.aborted) {
        numTokens[tenant]! += 32;
        numDone++;
      }
    }
  };
  const clients = SHARES.flatMap((share, tenant) => Array.from({ length: Math.round(share * numStreams) }, () => client(tenant))); // prettier-ignore
  const began = performance.now();
  const isOver = (): boolean => numDone >= maxDone || performance.now() - began >= ms;
  while (!isOver()) {
    await sleep(Math.min(1000, ms / 20));
    const bytes = residentBytes(server);
    if (bytes !== null) memory.push(bytes);
  }
  over.abort();
  const healthTimes = await health.stop();
  await Promise.all(clients);
  return { numTokens, numDone, memory, firstBytes, healthTimes };
}

/** More requests at once than allowed: each is answered, or refused with the time to come back. */
async function overload(url: string, token: string, problems: string[]): Promise<number> {
  const answers = await Promise.all(
    Array.from({ length: 120 }, (_, i) => ask(url, '/v1/completions', { token, body: { ...bodyOf(i, 64), stream: false }, timeoutMs: 300_000 })), // prettier-ignore
  );
  const refused = answers.filter(({ status }) => status !== 200);
  for (const { status, headers, text } of refused) {
    if (status !== 429 && status !== 503) problems.push(`overload: ${status} ${text.slice(0, 100)}`);
    if (!(Number(headers.get('retry-after')) > 0)) problems.push(`overload: ${status} without retry-after`);
  }
  return refused.length;
}

/** Chats while many clients hold event streams, or wait for one: each is answered. */
async function chatBesideWatchers(url: string, tokens: Site['tokens'], numStreams: number, problems: string[]) {
  const count = numStreams * WATCHERS_PER_STREAM;
  const reason = whyTooMany(count);
  if (reason !== null) {
    console.log(`load: no chats beside watchers: ${reason}`);
    return { watchers: 0, watchers_skipped: reason };
  }
  const watchers = await holdWatchers(url, tokens.admin, count);
  let numLost = 0;
  let numLeft = numStreams * CHATS_PER_STREAM;
  const client = async (): Promise<void> => {
    while (numLeft-- > 0) {
      const body = { model: 'm', messages: [{ role: 'user', content: `Chat ${numLeft}` }], max_tokens: 16 };
      const answer = await ask(url, '/v1/chat/completions', { token: tokens.alice, body }).catch((error: unknown) =>
        String(error),
      );
      const { status, text } = typeof answer === 'string' ? { status: 0, text: answer } : answer;
      if (status === 200 && text.includes('"finish_reason"')) continue;
      numLost++;
      problems.push(`a chat beside ${count} watchers was lost: ${status} ${text.slice(0, 100)}`);
    }
  };
  await Promise.all(Array.from({ length: CHATS_AT_ONCE }, client));
  const { streaming, refused } = watchers.counts;
  if (streaming === 0) problems.push('no client had an event stream');
  problems.push(...watchers.stop());
  return { watchers: count, event_streams: streaming, event_streams_refused: refused, chats_lost: numLost };
}

/** SIGTERM while streams run: all of them end whole, and the process ends with 0. */
async function drain(server: ServeProcess, token: string, problems: string[]): Promise<number> {
  const started = await Promise.all(
    Array.from({ length: 24 }, (_, i) => request(server.url, '/v1/completions', { token, body: bodyOf(i, 96), timeoutMs: 120_000 })), // prettier-ignore
  );
  server.process.kill('SIGTERM');
  const texts = await Promise.all(started.map((response) => response.text().catch((error: unknown) => String(error))));
  const broken = texts.filter((text) => !text.endsWith('data: [DONE]\n\n'));
  for (const text of broken) problems.push(`a stream was cut by the shutdown: ${text.slice(-100)}`);
  const code = await server.exit;
  if (code !== 0) problems.push(`the shutdown ended with ${code}`);
  return texts.length - broken.length;
}

export const load: Part = {
  name: 'load',
  summary: '200 streams of four tenants, watchers, overload, shutdown',
  async run(options) {
    const [problems, slowness]: [string[], string[]] = [[], []];
    const numStreams = Math.min(DEFAULT_STREAMS, options.maxRounds ?? DEFAULT_STREAMS);
    const site = await createSite({ model: '260K', environment: { RUVLLM_KERNELS: '' }, args: () => ['--no-memory', '--max-requests', '512', '--max-requests-per-tenant', '256', '--requests-per-minute', '1000000', '--shutdown-timeout', '100', '--memory-budget', '64MiB'] }); // prettier-ignore
    const strict = await createSite({ model: '260K', environment: { RUVLLM_KERNELS: '' }, args: () => ['--no-memory', '--max-requests-per-tenant', '16', '--requests-per-minute', '1000000'] }); // prettier-ignore
    try {
      const server = await site.start();
      const tokens = await createTokens(server.url, site);
      const maxDone = numStreams * REQUESTS_PER_STREAM;
      // Buffers and compiled code grow at first, and so does the prefix cache up to its budget.
      await runStreams(server, tokens, numStreams, { ms: options.minutes * 24_000, maxDone: 0.6 * maxDone }, problems);
      const { numTokens, numDone, memory, firstBytes, healthTimes } = await runStreams(
        server,
        tokens,
        numStreams,
        { ms: options.minutes * 48_000, maxDone },
        problems,
      );
      const total = numTokens.reduce((sum, one) => sum + one, 0);
      const slowest = Math.min(...numTokens) / (total / SHARES.length);
      if (slowest < MIN_SHARE) slowness.push(`the slowest tenant got ${slowest.toFixed(2)} of its share`);
      const third = Math.max(1, Math.floor(memory.length / 3));
      const [before, after] = [percentileOf(memory.slice(0, third), 0.5)!, percentileOf(memory.slice(-third), 0.5)!];
      if (after > before * MAX_GROWTH) slowness.push(`the memory grew from ${before} to ${after} bytes`);
      const healthP99 = percentileOf(healthTimes, 0.99)!;
      if (!(healthP99 <= LIMIT_HEALTH_MS))
        slowness.push(`one in a hundred answers of /health took ${healthP99} ms or more`);
      const slope = growthOfLastHalf(memory);
      if (memory.length >= MIN_SAMPLES && slope > MAX_SLOPE) {
        slowness.push(`the memory of the last half of ${numDone} requests grew by ${slope.toFixed(4)}`);
      }
      const drained = await drain(server, tokens[0]!, problems);
      const small = await strict.start();
      const watched = await chatBesideWatchers(small.url, strict.tokens, numStreams, problems);
      const refused = await overload(small.url, strict.tokens.alice, problems);
      if (refused === 0) problems.push('nothing was refused at 120 requests with a limit of 16');
      await kill(small);
      return {
        figures: {
          streams: numStreams,
          streams_done: numDone,
          tokens: total,
          slowest_share: Number(slowest.toFixed(3)),
          shares: numTokens.map((one) => (one / (total / SHARES.length)).toFixed(2)).join(' '),
          first_byte_p99_ms: percentileOf(firstBytes, 0.99),
          health_p99_ms: healthP99,
          rss_slope: Number(slope.toFixed(4)),
          ...watched,
          memory_growth: Number((after / before).toFixed(3)),
          memory_mib: Math.round(after / 2 ** 20),
          overload_refused: refused,
          drained,
        },
        problems: shorten(problems),
        slowness,
      };
    } finally {
      site.dispose();
      strict.dispose();
    }
  },
};
