// The reasoning bank: searches among many patterns, in the thread that serves requests, and distillation without new data.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { makeClusteredVectors } from '../clustered-vectors.ts';
import { importBuilt } from '../dist.ts';
import { percentile } from '../report.ts';

const { openNodeMemory } = await importBuilt<typeof import('../../../src/node/memory/open-memory.ts')>('node/memory/open-memory'); // prettier-ignore
const { createTrajectories } = await importBuilt<typeof import('../../../src/learning/trajectories/trajectories.ts')>('learning/trajectories/trajectories'); // prettier-ignore
const { createReasoningBank } = await importBuilt<typeof import('../../../src/learning/reasoning-bank/bank.ts')>('learning/reasoning-bank/bank'); // prettier-ignore
const { patternToRecord } = await importBuilt<typeof import('../../../src/learning/reasoning-bank/pattern.ts')>('learning/reasoning-bank/pattern'); // prettier-ignore

const DIM = 768;
const BATCH = 500;
const NUM_QUERIES = 1000;
const SETTLE_MS = 5000;
const POLL_MS = 10;
const TENANT = 'bench';
const SPACE = 'bench-vectors';

export interface BankFigures {
  readonly numPatterns: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** Of all searches, ascending. */
  readonly times: readonly number[];
  /** Patterns after each distillation: only the first has new data. */
  readonly counts: readonly number[];
  readonly created: readonly number[];
}

export async function measureBank(numPatterns: number): Promise<BankFigures> {
  const folder = mkdtempSync(join(tmpdir(), 'ruvllm-bench-bank-'));
  const memory = await openNodeMemory({
    place: folder,
    masterKey: { key: new Uint8Array(32).fill(5) },
    modelPath: null,
  });
  try {
    const { store, services, watch } = memory;
    const trajectories = createTrajectories(store, services);
    const bank = createReasoningBank({ store, services, watch, trajectories });
    const { vectors, queries } = makeClusteredVectors(numPatterns, NUM_QUERIES, DIM, Math.ceil(numPatterns / 50), 3);
    const vectorOf = (i: number): Float32Array => vectors.slice(i * DIM, (i + 1) * DIM);
    const queryOf = (i: number): Float32Array => queries.slice(i * DIM, (i + 1) * DIM);
    // As in a server after its first requests: the table follows the writes.
    bank.keepAtHand(TENANT, { vector: queryOf(0), space: SPACE });
    while (!bank.isAtHand(TENANT, SPACE)) await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    for (let from = 0; from < numPatterns; from += BATCH) {
      const length = Math.min(BATCH, numPatterns - from);
      await store.put(Array.from({ length }, (_, i) => patternToRecord(patternOf(services.newId(), from + i, vectorOf(from + i)), TENANT))); // prettier-ignore
    }
    // Recent writes are still on their way into the database and the saved index; a bank is filled over weeks.
    await new Promise((resolve) => setTimeout(resolve, SETTLE_MS));
    const search = (i: number) => bank.search(TENANT, { vector: queryOf(i), space: SPACE, k: 5 });
    for (let i = 0; i < 100; i++) await search(i);
    const times: number[] = [];
    for (let i = 0; i < NUM_QUERIES; i++) {
      const began = performance.now();
      await search(i);
      times.push(performance.now() - began);
    }
    times.sort((a, b) => a - b);
    for (let i = 0; i < 60; i++) await trajectories.add(TENANT, trajectoryOf(i, queryOf(i % 6)));
    const counts = [await bank.count(TENANT)];
    const created: number[] = [];
    for (let cycle = 0; cycle < 4; cycle++) {
      created.push((await bank.distil(TENANT)).numCreated);
      counts.push(await bank.count(TENANT));
    }
    return { numPatterns, p50Ms: percentile(times, 0.5), p99Ms: percentile(times, 0.99), times, counts, created };
  } finally {
    await memory.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

function patternOf(id: string, i: number, embedding: Float32Array) {
  const quality = { count: 3 + (i % 50), mean: (i % 100) / 100, variance: 0.01 };
  return {
    id,
    text: `Asked: question ${i}\nA good answer: answer ${i}`,
    embedding,
    space: SPACE,
    verdict: 'success' as const,
    support: quality.count,
    confidence: 0.5,
    numUses: 0,
    lastUsedMs: Date.now(),
    quality,
    models: { small: quality },
    recommendedModel: null,
  };
}

function trajectoryOf(i: number, embedding: Float32Array) {
  return {
    requestId: `01900000-0000-7000-8000-${i.toString(16).padStart(12, '0')}`,
    sessionId: null,
    userId: null,
    model: 'small',
    createdMs: Date.now() + i,
    query: `question ${i % 6}`,
    prompt: null,
    answer: `answer ${i % 6}`,
    steps: [],
    parameters: { propensity: null },
    retrieved: [],
    quality: 1,
    latencyMs: 1,
    numOutputTokens: 1,
    embedding,
    space: SPACE,
  };
}
