// The memory as requests use it, in its thread: searches among many patterns, sessions, policies, the queue of the audit log.
import { existsSync, renameSync, rmSync } from 'node:fs';
import { importBuilt } from './dist.ts';
import { keptPath, versionOf } from './kept.ts';
import { percentile } from './report.ts';

const { openNodeMemory } = await importBuilt<typeof import('../../src/node/memory/open-memory.ts')>('node/memory/open-memory'); // prettier-ignore

const TENANT = 'bench';
/** A tenant whose records are not kept between runs. */
const VISITOR = 'bench visitor';
/** Sources that determine the on-disk format of a filled store. */
const MADE_BY = ['memory/store', 'memory/vector-index', 'node/memory', 'platform/node/memory', 'platform/node/sealing'];
const SPACE = 'bench-vectors';
const BATCH = 500;
const CALLS = 1000;

export interface MemoryThreadTimes {
  readonly patternP50Ms: number;
  readonly patternP99Ms: number;
  /** From the cache, where an active session is. */
  readonly sessionP99Us: number;
  readonly sessionStoreP99Us: number;
  readonly policyP99Us: number;
  readonly enqueueP99Us: number;
  /** Of the full memory, until the first answer. */
  readonly openMs: number;
  /** Null: kept from an earlier run. */
  readonly fill: StoreFill | null;
}

interface StoreFill {
  /** Rows with vectors, committed to the disk. */
  readonly putsPerSecond: number;
  readonly indexSeconds: number;
}

async function timeEach(calls: number, call: (i: number) => unknown): Promise<number[]> {
  const times: number[] = [];
  for (let i = 0; i < calls; i++) {
    const began = performance.now();
    const value = call(i);
    // A value that is available at once is not awaited, as in real use.
    if (value instanceof Promise) await value;
    times.push(performance.now() - began);
  }
  return times.sort((a, b) => a - b);
}

const openAt = (place: string) =>
  openNodeMemory({ place, masterKey: { key: new Uint8Array(32).fill(5) }, modelPath: null });
type Memory = Awaited<ReturnType<typeof openAt>>;

async function fill(memory: Memory, vectors: Float32Array, dim: number): Promise<StoreFill> {
  const count = vectors.length / dim;
  const began = performance.now();
  for (let from = 0; from < count; from += BATCH) {
    const length = Math.min(BATCH, count - from);
    await memory.store.put(
      Array.from({ length }, (_, i) => ({
        id: uuidOf(from + i),
        tenant: TENANT,
        kind: 'pattern',
        expiresMs: null,
        fields: { quality: ((from + i) % 100) / 100 },
        body: { text: `pattern ${from + i}` },
        vector: vectors.slice((from + i) * dim, (from + i + 1) * dim),
        space: SPACE,
      })),
    );
  }
  const putMs = performance.now() - began;
  await memory.store.nearest(TENANT, { vector: vectors.slice(0, dim), space: SPACE, kinds: ['pattern'], k: 1 });
  return { putsPerSecond: (count * 1000) / putMs, indexSeconds: (performance.now() - began - putMs) / 1000 };
}

/** Fills a memory with patterns, unless one is kept, and queries it; sessions and requests of another tenant come and go. */
export async function measureMemoryThread(
  vectors: Float32Array,
  queries: Float32Array,
  dim: number,
  cache: { readonly folder: string; readonly parameters: string },
): Promise<MemoryThreadTimes> {
  const place = keptPath(cache.folder, cache.parameters, versionOf(MADE_BY));
  let filled: StoreFill | null = null;
  if (!existsSync(place)) {
    // Renamed when complete, so that an interrupted run leaves no partial file.
    const part = `${place}.part`;
    rmSync(part, { recursive: true, force: true });
    const memory = await openAt(part);
    filled = await fill(memory, vectors, dim);
    await memory.close();
    renameSync(part, place);
  }
  const openBegan = performance.now();
  const memory = await openAt(place);
  try {
    const nearest = (i: number) =>
      memory.store.nearest(TENANT, {
        vector: queries.slice((i % CALLS) * dim, ((i % CALLS) + 1) * dim),
        space: SPACE,
        kinds: ['pattern'],
        k: 10,
        withVectors: false,
      });
    await nearest(0);
    const openMs = performance.now() - openBegan;
    await timeEach(100, nearest);
    const patterns = await timeEach(CALLS, nearest);

    await memory.store.eraseTenant(VISITOR);
    for (let i = 0; i < CALLS; i++) await memory.sessions.touch(VISITOR, `session ${i}`, { userId: `user ${i % 10}` });
    const read = await timeEach(CALLS * 10, (i) => memory.sessions.get(VISITOR, `session ${i % CALLS}`));
    const ids = (await memory.store.find(VISITOR, { kinds: ['session'], order: 'newest', limit: CALLS })).records;
    const stored = await timeEach(CALLS, (i) => memory.store.get(VISITOR, [ids[i % ids.length]!.id]));
    const policies = await timeEach(CALLS * 10, () => memory.policies.get(VISITOR, 'router'));
    const enqueue = await timeEach(CALLS * 5, (i) => memory.audit.enqueue(VISITOR, entryOf(i, dim)));
    return {
      patternP50Ms: percentile(patterns, 0.5),
      patternP99Ms: percentile(patterns, 0.99),
      sessionP99Us: percentile(read, 0.99) * 1000,
      sessionStoreP99Us: percentile(stored, 0.99) * 1000,
      policyP99Us: percentile(policies, 0.99) * 1000,
      enqueueP99Us: percentile(enqueue, 0.99) * 1000,
      openMs,
      fill: filled,
    };
  } finally {
    await memory.audit.flush();
    await memory.store.eraseTenant(VISITOR);
    await memory.close();
  }
}

const uuidOf = (i: number): string => `01900000-0000-7000-8000-${i.toString(16).padStart(12, '0')}`;

function entryOf(i: number, dim: number) {
  return {
    requestId: uuidOf(i),
    sessionId: `session ${i % 100}`,
    timestampMs: Date.now(),
    model: 'bench',
    routing: null,
    quality: null,
    latency: { embeddingMs: 0, retrievalMs: 0, routingMs: 0, generationMs: 1, totalMs: 1, ttftMs: 1 },
    contextDocIds: [],
    query: 'a question',
    response: 'an answer',
    numPromptTokens: 3,
    numOutputTokens: 3,
    queryEmbedding: new Float32Array(dim).fill(1),
    responseEmbedding: null,
    space: SPACE,
    error: null,
  };
}
