// Everything on the path of a routed request, around a model that says "ok" at once.
import type { Memory } from '../../src/memory/memory.ts';
import { importBuilt } from './dist.ts';
import { percentile } from './report.ts';
import { createInstantModel } from './serve/instant-model.ts';

const { createRequestPipeline } = await importBuilt<typeof import('../../src/runtime/requests/request-pipeline.ts')>('runtime/requests/request-pipeline'); // prettier-ignore
const { createRequestMemory } = await importBuilt<typeof import('../../src/runtime/memory/request-memory.ts')>('runtime/memory/request-memory'); // prettier-ignore
const { createModelHost } =
  await importBuilt<typeof import('../../src/runtime/requests/model-host.ts')>('runtime/requests/model-host');
const { createAdmission } =
  await importBuilt<typeof import('../../src/runtime/requests/admission.ts')>('runtime/requests/admission');
const { resolveServerLimits } = await importBuilt<typeof import('../../src/server/limits.ts')>('server/limits');
const { createLiveRequests } = await importBuilt<typeof import('../../src/runtime/requests/live-requests.ts')>('runtime/requests/live-requests'); // prettier-ignore
const { createServerMetrics } = await importBuilt<typeof import('../../src/server/metrics/server-metrics.ts')>('server/metrics/server-metrics'); // prettier-ignore
const { systemClock } = await importBuilt<typeof import('../../src/core/clock.ts')>('core/clock');
const { silentTracer } =
  await importBuilt<typeof import('../../src/runtime/requests/tracing.ts')>('runtime/requests/tracing');
const { openNodeLearning } = await importBuilt<typeof import('../../src/node/learning/open-learning.ts')>('node/learning/open-learning'); // prettier-ignore
const { createRouting } = await importBuilt<typeof import('../../src/runtime/routing/routing.ts')>('runtime/routing/routing'); // prettier-ignore
const { createRouterLoop } = await importBuilt<typeof import('../../src/runtime/routing/router-loop.ts')>('runtime/routing/router-loop'); // prettier-ignore
const { readRouteConfig } = await importBuilt<typeof import('../../src/runtime/routing/route-config.ts')>('runtime/routing/route-config'); // prettier-ignore
const { trainRouter } = await importBuilt<typeof import('../../src/learning/router-training/train-router.ts')>('learning/router-training/train-router'); // prettier-ignore
const { createTrajectories } = await importBuilt<typeof import('../../src/learning/trajectories/trajectories.ts')>('learning/trajectories/trajectories'); // prettier-ignore

const TENANT = 'bench';
const SYLLABLES = 'ba co de fi go hu ka le mi no pa ri so tu va ze lan mer tor sin'.split(' ');
/** As many as in real use: with few words, texts would be copies of each other, and recall would find only the first. */
const WORDS = Array.from({ length: 4000 }, (_, i) => `${SYLLABLES[i % 20]}${SYLLABLES[Math.floor(i / 20) % 20]}${i < 400 ? '' : SYLLABLES[Math.floor(i / 400) % 20]}`); // prettier-ignore
const BATCH = 500;
const NUM_RATED = 400;

/** The same for the same number; a few words are in most texts, most words in few. */
function sentence(i: number, length: number): string {
  const random = createRandom(i);
  return Array.from({ length }, () => WORDS[Math.floor(WORDS.length * random() ** 3)]!).join(' ');
}

function createRandom(seed: number): () => number {
  let state = (seed + 1) * 0x9e3779b1;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
const uuidOf = (i: number): string => `01900000-0000-7000-8000-${i.toString(16).padStart(12, '0')}`;

/** A memory with documents and patterns, a trained router, and the whole path of a request. */
export async function openOrchestra(memory: Memory, numRecords: number, numAnswerWords: number) {
  const log = (what: string): void => console.error(`${(performance.now() / 1000).toFixed(1)} s: ${what}`);
  await fill(memory, numRecords);
  log('filled');
  const config = readRouteConfig(
    {
      candidates: [
        { kind: 'local', id: 'small', model: 'small' },
        { kind: 'local', id: 'large', model: 'large' },
      ],
      default: 'small',
    },
    {},
  );
  const clock = systemClock;
  const reports: string[] = [];
  const report = (message: string): void => void reports.push(message);
  const routing = createRouting({ config, memory, now: clock.now, seed: 1, report });
  await rate(memory);
  log('rated');
  const loop = createRouterLoop(memory, routing, { trainRouter: async (job) => trainRouter(job, memory.services.sha256), cancel: async () => {} }); // prettier-ignore
  const { version, reason } = await loop.train(TENANT, 'background');
  if (version?.isAccepted !== true) throw new Error(`no router was trained: ${reason}`);
  log(`a router is trained: ${reason}`);
  const learning = openNodeLearning({ memory, report });
  /** Called when a request has completed its path. */
  const ends = new Map<string, (atMs: number) => void>();
  const requestMemory = createRequestMemory(memory, {
    now: clock.now,
    wallClock: clock.wallClock,
    report,
    learning: {
      ...learning,
      observe(tenant, trajectory) {
        learning.observe(tenant, trajectory);
        ends.get(trajectory.requestId)?.(performance.now());
      },
    },
  });
  const limits = resolveServerLimits({ requestsPerMinute: 1e7, burst: 1e6 });
  const model = createInstantModel(numAnswerWords === 1 ? 'ok' : sentence(0, numAnswerWords));
  const service = createRequestPipeline({
    models: createModelHost({
      entries: ['small', 'large'].map((id) => ({ id, aliases: [], created: 0, sizeBytes: null, load: async () => model })), // prettier-ignore
      budgetBytes: null,
      clock,
    }),
    admission: createAdmission(limits, clock),
    limits,
    meters: createServerMetrics(clock),
    live: createLiveRequests(clock),
    clock,
    tracer: silentTracer,
    memory: requestMemory,
    routing,
  });
  let count = 0;

  return {
    async ask(i: number, isRecalled: boolean): Promise<{ wholeMs: number; firstMs: number }> {
      const requestId = uuidOf(0x10000000 + ++count);
      const ended = new Promise<number>((resolve) => ends.set(requestId, resolve));
      const caller = { requestId, tenant: TENANT, keyId: null, scopes: [], signal: new AbortController().signal, trace: null }; // prettier-ignore
      const content = sentence(i, 12);
      const startMs = performance.now();
      const running = await service.start(
        {
          model: 'auto',
          prompts: [[{ role: 'user', content }]],
          numChoices: 1,
          options: isRecalled ? { memory: {} } : {},
          constraint: null,
          tools: [],
          toolChoice: 'auto',
          canCallInParallel: true,
        },
        caller,
      );
      const firstMs = performance.now() - startMs;
      for await (const _ of running.events);
      const wholeMs = (await ended) - startMs;
      ends.delete(requestId);
      return { wholeMs, firstMs };
    },
    /** The time per stage in the audit log, for the last requests. */
    async parts(numRequests: number): Promise<string[][]> {
      await requestMemory.settle();
      await memory.audit.flush();
      const byPart = new Map<string, number[]>();
      for (let after: string | undefined, left = numRequests; left > 0;) {
        const page = await memory.audit.search(TENANT, { limit: Math.min(100, left), ...(after === undefined ? {} : { after }) }); // prettier-ignore
        for (const { entry } of page.entries) {
          for (const [part, ms] of Object.entries(entry.latency)) {
            if (ms !== null) byPart.set(part, [...(byPart.get(part) ?? []), ms]);
          }
        }
        left -= page.entries.length;
        if (page.next === null) break;
        after = page.next;
      }
      return [...byPart].map(([name, times]) => {
        const sorted = times.sort((a, b) => a - b);
        return [name, percentile(sorted, 0.5).toFixed(3), percentile(sorted, 0.99).toFixed(3)];
      });
    },
    async close(): Promise<void> {
      await requestMemory.settle();
      await learning.close();
      for (const message of new Set(reports)) console.error(message);
    },
  };
}

async function fill(memory: Memory, numRecords: number): Promise<void> {
  const pattern = { support: 10, confidence: 0.8, numUses: 0, lastUsedMs: Date.now(), verdict: 'success', quality: { count: 10, mean: 0.9, variance: 0.01 }, models: {}, recommendedModel: 'large' }; // prettier-ignore
  for (let from = 0; from < numRecords; from += BATCH) {
    const records = [];
    for (let i = from; i < Math.min(numRecords, from + BATCH); i++) {
      const embedded = (await memory.embed(sentence(i, 20)))!;
      const isPattern = i % 4 === 0;
      records.push({
        id: uuidOf(i),
        tenant: TENANT,
        kind: isPattern ? ('pattern' as const) : ('document' as const),
        expiresMs: null,
        fields: { source: isPattern ? 'reasoning-bank' : 'bench', quality: 0.9, topic: null },
        body: { text: sentence(i, 20), metadata: isPattern ? pattern : {} },
        vector: embedded.vector,
        space: embedded.space,
      });
    }
    await memory.store.put(records as Parameters<Memory['store']['put']>[0]);
  }
}

/** Ratings for training a router: the large model is good at long texts, the small one at others. */
async function rate(memory: Memory): Promise<void> {
  const trajectories = createTrajectories(memory.store, memory.services);
  for (let i = 0; i < NUM_RATED; i++) {
    const isLong = i % 2 === 0;
    const model = i % 3 === 0 ? 'small' : 'large';
    const requestId = uuidOf(0x20000000 + i);
    await trajectories.add(TENANT, {
      requestId,
      sessionId: null,
      userId: null,
      model,
      createdMs: Date.now() - 100_000 + i,
      query: sentence(i, isLong ? 20 : 4),
      prompt: null,
      answer: 'ok',
      steps: [],
      parameters: { propensity: null },
      retrieved: [],
      quality: null,
      latencyMs: 1,
      numOutputTokens: 1,
      embedding: null,
      space: null,
    });
    const score = (model === 'large') === isLong ? 1 : 0;
    await trajectories.rate(TENANT, { requestId, score });
  }
}
