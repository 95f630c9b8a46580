import { assert } from '../../src/core/errors.ts';
import { createRandom } from '../../src/core/random.ts';
import { createEngine, type Engine } from '../../src/engine/engine.ts';
import { type Pooling, POOLINGS } from '../../src/engine/pooling.ts';
import type { SpeculatorOptions } from '../../src/engine/speculation/speculator.ts';
import type { EngineEvent } from '../../src/engine/types.ts';
import type { Reservation } from '../../src/kv-cache/types.ts';
import type { LoadedModel } from '../../src/models/types.ts';
import { engineRequest } from './engine-request.ts';
import { createMemorySpill } from './memory-spill.ts';
import { checkPageRanges } from './page-ranges.ts';
import { createToyModel, createToySampler, TOY_VOCAB, toyContinuation, toyEmbedding } from './toy-model.ts';

/** Event counts of a simulation. */
export type SimulationCounts = Record<(typeof COUNTED)[number], number>;

const COUNTED = [
  'numFinished',
  'numAborted',
  'numExpired',
  'numRefused',
  'numHits',
  'numPartialHits',
  'numMisses',
  'numCopied',
  'numEvictions',
  'numPacked',
  'numRestored',
  'numPreemptions',
  'numCorrupt',
  'numFailedWrites',
  'numRestarts',
  'numReservations',
  'numAbortedInStep',
  'numAbortedInPacking',
  'numStops',
  'numEmbedded',
  'numAbortedInDraft',
  'numAcceptedDrafts',
  'numRejectedDrafts',
] as const;

interface Ask {
  readonly tenant: string;
  readonly promptIds: readonly number[];
  readonly maxTokens: number;
  readonly seed: number;
  readonly stopIds: ReadonlySet<number>;
  readonly cachePrefix: boolean;
  /** Set: no text is generated. */
  readonly pooling?: Pooling;
  readonly tokens: number[];
  embedding?: Float32Array;
  end: 'finished' | 'aborted' | 'expired' | null;
}

/** Requests, cancels, restarts and failures drawn from `seed`; throws if a token differs from the request's result alone. */
export async function simulate(seed: number): Promise<SimulationCounts> {
  const random = createRandom(seed);
  const below = (limit: number): number => Math.floor(random.next() * limit);
  const chance = (share: number): boolean => random.next() < share;
  const pick = <T>(values: readonly T[]): T => values[below(values.length)]!;
  const counts = Object.fromEntries(COUNTED.map((name) => [name, 0])) as SimulationCounts;

  const pageTokens = pick([4, 8, 16]);
  const packed = chance(0.5);
  const limits = {
    numPages: 4 + below(packed ? 56 : 16),
    maxBatchTokens: 1 + below(chance(0.3) ? 6 : 40),
    maxSequences: 1 + below(6),
    maxLogitRows: chance(0.5) ? 6 : 24,
  };
  const options = {
    maxContext: 40 + below(160),
    tailTokens: below(3) * 16,
    agingMs: 1 + below(100),
    maxWaiting: 3 + below(20),
    maxRunningPerTenant: 1 + below(4),
    maxRequestsPerTenant: 4 + below(10),
    keepsPrefixes: chance(0.95),
  };
  // As few as possible, or enough that many are checkpoints.
  const numStates = chance(0.5) ? limits.maxSequences + 1 + below(chance(0.5) ? 2 : 20) : 0;
  // Each rate is sometimes high and sometimes zero: otherwise rare events would hardly ever coincide.
  const abortShare = pick([0, 0.003, 0.03]);
  const sessionShare = pick([0, 0.3, 1]);
  const corruptShare = pick([0, 0.1, 0.9]);
  const arrivalShare = pick([0.1, 0.5, 0.9]);
  const speculates = chance(0.6);
  const errorShare = pick([0, 0.2, 0.9]);
  const hasDraftModel = speculates && numStates === 0 && chance(0.5);
  const draftPages = 2 + below(30);
  const tenants = pick([['a'], ['a', 'a', 'a', 'b'], ['a', 'b', 'c']]);
  const longest = packed ? 120 : 40;
  const spill = chance(0.6) ? createMemorySpill(chance(0.3) ? 1 + below(20) : Infinity) : null;
  const asks = new Map<number, Ask>();
  const contexts: (readonly number[])[] = [];
  let clock = 0;
  let nextId = 0;
  let numSteps = 0;
  let reservation: Reservation | null = null;

  function abortOne(share = abortShare): boolean {
    const open = [...asks].filter(([, ask]) => ask.end === null);
    if (open.length === 0 || !chance(share)) return false;
    const [id, ask] = pick(open);
    if (!engine.abort(id)) return false; // It timed out in the running step.
    ask.end = 'aborted';
    engine.checkIntegrity();
    counts.numAborted++;
    return true;
  }

  function start(): Engine {
    const model = createToyModel({
      pageTokens,
      packed,
      limits,
      numStates,
      beforeForward(batch) {
        checkPageRanges(batch, model.pages, limits.numPages);
        if (abortOne()) counts.numAbortedInStep++;
      },
    });
    const pages: LoadedModel['pages'] = {
      ...model.pages,
      async packPages(moves) {
        const packing = model.pages.packPages(moves);
        if (abortOne(10 * abortShare)) counts.numAbortedInPacking++;
        await packing;
      },
    };
    const speculation = { isForced: true, openSources: openDrafts };
    const draftModel = hasDraftModel
      ? createToyModel({
          limits: { numPages: draftPages, maxBatchTokens: 1 + below(20), maxLogitRows: 1 + below(4) },
          beforeForward() {
            if (abortOne()) counts.numAbortedInDraft++;
          },
        })
      : null;
    return createEngine(
      { ...model, pages },
      { ...options, now: () => clock, spill: spill?.open() ?? null, speculates, speculation, draftModel },
    );
  }

  /** Guesses the true continuation, with errors. */
  const openDrafts: NonNullable<SpeculatorOptions['openSources']> = ({ request }) => {
    const ask = asks.get(request.id)!;
    if (hasDraftModel) return [];
    const answer = [...toyContinuation(ask.promptIds, { ...ask, stopIds: new Set() })];
    return [
      {
        propose(tokens, maxTokens) {
          const done = tokens.length - ask.promptIds.length;
          const guess = answer.slice(done, done + maxTokens);
          const draft = guess.map((id) => (chance(errorShare) ? below(TOY_VOCAB) : id));
          return draft.length === 0 ? null : { source: 'model', tokens: draft, evidence: 2 };
        },
      },
    ];
  };

  /** Totals of an engine that ends or is killed. */
  function tally(): void {
    const { cache, ...totals } = engine.stats();
    const all: Record<string, unknown> = { ...cache.spill, ...cache, ...totals };
    for (const { numProposed, numAccepted } of Object.values(totals.drafts)) {
      counts.numAcceptedDrafts += numAccepted;
      counts.numRejectedDrafts += numProposed - numAccepted;
    }
    for (const name of COUNTED) if (typeof all[name] === 'number') counts[name] += all[name];
  }

  /** A prompt that usually starts like an earlier one and continues like it or differently. */
  function makePrompt(maxLength: number): number[] {
    const context = contexts.length > 0 && chance(0.8) ? pick(contexts) : [];
    const prompt = context.slice(0, chance(0.4) ? context.length : below(context.length + 1)).slice(0, maxLength - 1);
    const length = Math.min(maxLength, prompt.length + 1 + below(chance(0.5) ? 4 : longest));
    while (prompt.length < length) prompt.push(below(TOY_VOCAB));
    return prompt;
  }

  function add(): void {
    const pooling = chance(0.15) ? { pooling: pick(POOLINGS) } : {};
    const isEmbedding = 'pooling' in pooling;
    const maxTokens = isEmbedding ? 0 : 1 + below(Math.min(chance(0.2) ? 60 : 12, engine.maxContext - 1));
    const promptIds = makePrompt(engine.maxContext - maxTokens);
    const stopIds = new Set(chance(0.3) ? [below(TOY_VOCAB), below(TOY_VOCAB)] : []);
    const cachePrefix = !isEmbedding && chance(0.93);
    const ask: Ask = { tenant: pick(tenants), promptIds, maxTokens, seed: below(1e9), stopIds, cachePrefix, ...pooling, tokens: [], end: null }; // prettier-ignore
    const id = nextId++;
    try {
      engine.add(
        engineRequest({
          ...ask,
          id,
          sampler: createToySampler(ask.seed),
          retention: chance(sessionShare) ? 'session' : 'ordinary',
          priority: chance(0.3) ? below(4) - 1 : 0,
          timeoutMs: chance(0.1) ? below(60) : null,
          adapterHash: chance(0.05) ? 'adapter' : null,
        }),
      );
    } catch (error) {
      assert((error as { code?: string }).code === 'overloaded', `request ${id} is refused: ${String(error)}`);
      return;
    }
    asks.set(id, ask);
    contexts.push(promptIds);
  }

  function hear(event: EngineEvent): void {
    const ask = asks.get(event.id)!;
    assert(ask.end === null, `${event.type} of request ${event.id} after it was ${ask.end}`);
    if (event.type === 'token') {
      ask.tokens.push(event.token.tokenId);
    } else if (event.type === 'finished') {
      ask.end = 'finished';
      counts.numFinished++;
      if (event.reason === 'stop') counts.numStops++;
      contexts.push([...ask.promptIds, ...ask.tokens]);
    } else if (event.type === 'embedded') {
      ask.end = 'finished';
      ask.embedding = event.embedding;
      counts.numEmbedded++;
    } else {
      assert(event.type === 'failed', `request ${event.id} was examined`);
      assert(event.error.code === 'deadline_exceeded', `request ${event.id} failed: ${event.error.message}`);
      ask.end = 'expired';
    }
    if (event.type !== 'failed') assert(ask.cachePrefix || event.cachedTokens === 0, `${event.id} found pages`);
  }

  /** Changes the cache between two steps, like other users. */
  function disturb(): void {
    abortOne();
    if (chance(0.01)) engine.cache.clear();
    if (chance(0.05) && reservation === null) {
      const sizeBytes = 1 + below((limits.numPages * pageTokens * 8) / 2);
      try {
        reservation = engine.cache.reserve(sizeBytes);
        counts.numReservations++;
      } catch (error) {
        assert((error as { code?: string }).code === 'out_of_memory', String(error));
      }
    } else if (reservation !== null && chance(0.1)) {
      engine.cache.unreserve(reservation);
      reservation = null;
    }
    if (spill === null) return;
    if (chance(0.2)) engine.workInBackground();
    if (chance(0.05)) spill.refusesWrites = !spill.refusesWrites;
    if (chance(corruptShare) && spill.pages.size > 0) pick([...spill.pages.values()]).isCorrupt = true;
    if (chance(0.02) && spill.pages.size > 0) spill.pages.delete(pick([...spill.pages.keys()]));
  }

  async function step(): Promise<void> {
    const events = await engine.step();
    for (const event of events) hear(event);
    clock++;
    numSteps++;
    disturb();
    check(engine, numSteps);
  }

  async function restart(): Promise<void> {
    for (const ask of asks.values()) ask.end ??= 'aborted';
    tally();
    // Killed, or disposed, which writes pending pages.
    if (chance(0.5)) await engine.dispose();
    reservation = null;
    counts.numRestarts++;
    engine = start();
  }

  let engine = start();
  const numRequests = 5 + below(12);
  const numRestarts = spill !== null && chance(0.5) ? 1 : 0;
  let numKnownTokens = 0;
  for (let left = numRequests, restarts = numRestarts; left > 0 || engine.hasWork;) {
    for (; left > 0 && (chance(arrivalShare) || !engine.hasWork); left--) add();
    if (restarts > 0 && left < numRequests / 2) {
      restarts--;
      await restart();
    }
    await step();
    // Each preemption can recompute tokens, a chunk of `maxBatchTokens` per step, but not forever.
    numKnownTokens = [...asks.values()].reduce(
      (sum, { promptIds, maxTokens }) => sum + promptIds.length + maxTokens,
      0,
    );
    assert(numSteps <= 50 + 4 * numKnownTokens, `${numSteps} steps for ${numKnownTokens} tokens`);
  }
  const atRest = engine.stats();
  const numReserved = (atRest.cache.adapterBytes / atRest.cache.budgetBytes) * limits.numPages;
  assert(Math.round(atRest.numFreePages + numReserved) === limits.numPages, 'a sequence holds pages at rest');
  engine.cache.clear();
  if (reservation !== null) engine.cache.unreserve(reservation);
  const { cache } = engine.stats();
  assert(cache.usedBytes === 0 && cache.numCachedPages === 0, `${cache.usedBytes} bytes are used at rest`);
  tally();
  counts.numExpired = [...asks.values()].filter(({ end }) => end === 'expired').length;
  for (const [id, ask] of asks) checkTokens(id, ask);
  return counts;
}

/** Counting all pages costs as much as five steps; the peak would still tell later. */
const COUNTED_STEPS = 16;

function check(engine: Engine, numSteps: number): void {
  engine.checkIntegrity();
  if (numSteps % COUNTED_STEPS !== 0) return;
  const { usedBytes, peakBytes, budgetBytes } = engine.stats().cache;
  assert(usedBytes <= peakBytes && peakBytes <= budgetBytes, `${usedBytes} of ${budgetBytes} bytes, peak ${peakBytes}`);
}

function checkTokens(id: number, ask: Ask): void {
  if (ask.pooling !== undefined && ask.end === 'finished') {
    const expected = toyEmbedding(ask.promptIds, ask.pooling).join();
    assert(ask.embedding?.join() === expected, `request ${id}: ${ask.embedding?.join()}, alone ${expected}`);
  }
  const alone = toyContinuation(ask.promptIds, ask);
  const expected = ask.end === 'finished' ? alone : alone.slice(0, ask.tokens.length);
  assert(ask.end !== null, `request ${id} has not ended`);
  assert(ask.tokens.join() === expected.join(), `request ${id}: tokens ${ask.tokens.join()}, alone ${expected.join()}`);
}
