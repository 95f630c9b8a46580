// The server under load: overhead over plain Hono, many streams, memory, disconnects, hostile bodies.
//   npm run bench -- serve [--rounds 20] [--streams 64] [--requests 10000] [--disconnects 1000]
import { existsSync } from 'node:fs';
import { loadavg } from 'node:os';
import { parseArgs } from 'node:util';
import { benchModel } from './support/bench-model.ts';
import { acceptedShare, measureMasks, SCHEMA_SUITE } from './support/masks.ts';
import { percentile, printTable } from './support/report.ts';
import { measureDisconnects } from './support/serve/disconnects.ts';
import { measureHostile } from './support/serve/hostile.ts';
import { measureMemory } from './support/serve/memory.ts';
import { measureOverhead } from './support/serve/overhead.ts';
import { type Served, startServed } from './support/serve/served.ts';
import { measureStreams } from './support/serve/streams.ts';
import { readVocabulary } from './support/vocabularies.ts';

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '20' },
    streams: { type: 'string', default: '64' },
    requests: { type: 'string', default: '10000' },
    disconnects: { type: 'string', default: '1000' },
  },
});
const STORIES = '../shared/models/stories15M-q8_0.gguf';
const VOCABULARY = '../shared/suites/tokenizers/ggml-vocab-gpt-2.gguf';
const REQUESTS_PER_ROUND = 300;
const toMebibytes = (bytes: number): number => bytes / 2 ** 20;

async function withServed<T>(served: Served, work: (served: Served) => Promise<T>): Promise<T> {
  try {
    return await work(served);
  } finally {
    await served.stop();
  }
}

async function reportOverhead() {
  const contenders = await measureOverhead(Number(values.rounds), REQUESTS_PER_ROUND);
  printTable([
    ['a chat of one word', 'p50 ms', 'p99', 'requests/s'],
    ...contenders.map(({ name, p50Ms, p99Ms, requestsPerSecond }) => [
      name,
      p50Ms.toFixed(3),
      p99Ms.toFixed(3),
      requestsPerSecond.toFixed(0),
    ]),
  ]);
  const [plain, open, keyed] = contenders as [(typeof contenders)[0], (typeof contenders)[0], (typeof contenders)[0]];
  return { plain, open, keyed, openMs: open.p50Ms - plain.p50Ms, keyedMs: keyed.p50Ms - plain.p50Ms };
}

async function reportLoad(served: Served) {
  const streams = await measureStreams(served, Number(values.streams));
  console.log(
    `\n${streams.numStreams} concurrent streams: ${streams.numRight} equal their result alone, ` +
      `${streams.numTokens} tokens, ${streams.tokensPerSecond.toFixed(0)} tokens/s`,
  );
  let loopMaxMs = (await served.measure()).loopMaxMs;
  const disconnects = await measureDisconnects(served, Number(values.disconnects));
  console.log(
    `${disconnects.numDisconnects} disconnects (${disconnects.numHalf} in the middle of the request, ` +
      `${disconnects.numSilent} before the first byte, ${disconnects.numMidStream} after it): ` +
      `${disconnects.pagesLeaked} pages and ${disconnects.requestsLeft} requests left after ${disconnects.drainMs.toFixed(0)} ms`,
  );
  loopMaxMs = Math.max(loopMaxMs, (await served.measure()).loopMaxMs);
  const memory = await measureMemory(served, Number(values.requests));
  console.log('');
  printTable([
    ['requests', 'resident MiB', 'heap MiB'],
    ...memory.map(({ numRequests, rssBytes, heapBytes }) => [
      String(numRequests),
      toMebibytes(rssBytes).toFixed(1),
      toMebibytes(heapBytes).toFixed(1),
    ]),
  ]);
  return { streams, disconnects, memory, loopMaxMs: Math.max(loopMaxMs, ...memory.map((point) => point.loopMaxMs)) };
}

async function reportHostile(served: Served): Promise<number> {
  const results = await measureHostile(served);
  console.log('');
  printTable([
    ['hostile request', 'answer', 'longest stall, ms'],
    ...results.map(({ name, status, loopMaxMs }) => [name, status, loopMaxMs.toFixed(1)]),
  ]);
  return Math.max(...results.map(({ loopMaxMs }) => loopMaxMs));
}

/** Without the model or the suite a part is skipped, and its number is null. */
function skip(what: string, path: string): null {
  console.log(`\nskipped: ${what}, ${path} not found`);
  return null;
}

const overhead = await reportOverhead();
const load = existsSync(STORIES)
  ? await withServed(
      await startServed({ kind: 'model', path: STORIES, numSequences: Number(values.streams), maxContext: 256 }),
      reportLoad,
    )
  : skip('streams, disconnects and memory', STORIES);
const { path } = benchModel('15m', 'Q8_0');
const hostileMs = await withServed(
  await startServed({ kind: 'model', path, numSequences: 4, maxContext: 8192 }),
  reportHostile,
);
const masks = existsSync(VOCABULARY) ? measureMasks(readVocabulary(VOCABULARY)) : skip('token masks', VOCABULARY);
const share = acceptedShare() ?? skip('schemas', SCHEMA_SUITE);
const growth = load === null ? null : load.memory.at(-1)!.rssBytes - load.memory[0]!.rssBytes;
const heapGrowth = load === null ? null : load.memory.at(-1)!.heapBytes - load.memory[0]!.heapBytes;
console.log(
  JSON.stringify({
    overhead_p50_ms: Math.max(overhead.openMs, overhead.keyedMs),
    schemas_accepted_share: share,
    mask_p50_ms: masks === null ? null : percentile(masks.maskMs, 0.5),
    rss_growth_mb: growth === null ? null : toMebibytes(growth),
    pages_leaked: load?.disconnects.pagesLeaked ?? null,
    bench: 'serve',
    overhead_open_p50_ms: overhead.openMs,
    overhead_key_p50_ms: overhead.keyedMs,
    p99_ms: overhead.keyed.p99Ms,
    requests_per_s: overhead.open.requestsPerSecond,
    plain_requests_per_s: overhead.plain.requestsPerSecond,
    streams: load?.streams.numStreams ?? null,
    streams_right: load?.streams.numRight ?? null,
    heap_growth_mb: heapGrowth === null ? null : toMebibytes(heapGrowth),
    disconnects: load?.disconnects.numDisconnects ?? null,
    requests_left: load?.disconnects.requestsLeft ?? null,
    drain_ms: load?.disconnects.drainMs ?? null,
    loop_block_max_ms: load?.loopMaxMs ?? null,
    loop_block_hostile_ms: hostileMs,
    // Other load slows the side that computes more: with more load than cores, the times are unreliable.
    load_average: loadavg()[0],
  }),
);
