// Nearest-neighbour search: recall, queries/s against usearch and hnswlib-node on the same vectors with the same parameters and one
// thread each, build time, size, and the time to reopen a sealed index. --quick: 10,000 vectors instead of 100,000.
import { existsSync, renameSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { makeClusteredVectors } from './support/clustered-vectors.ts';
import { importBuilt } from './support/dist.ts';
import { keptPath, versionOf } from './support/kept.ts';
import { median, printTable } from './support/report.ts';
import { measureBaseMemory } from './support/base-memory.ts';
import { measureMemoryThread } from './support/memory-thread.ts';
import { openHnswlib, openUsearch } from './support/vector-peers.ts';
import type { VectorIndex } from '../src/memory/vector-index/types.ts';

const { createKernelFactory } = await importBuilt<typeof import('../src/platform/node/kernels/kernel-factory.ts')>('platform/node/kernels/kernel-factory'); // prettier-ignore
const { createExactIndex, createHnswIndex, openVectorIndex } = await importBuilt<typeof import('../src/memory/vector-index/index.ts')>('memory/vector-index/index'); // prettier-ignore
const { openVectorFile } = await importBuilt<typeof import('../src/platform/node/memory/vector-file.ts')>('platform/node/memory/vector-file'); // prettier-ignore

const isQuick = process.argv.includes('--quick');
const [count, dim, numQueries, k, ef] = [isQuick ? 10_000 : 100_000, 768, 1000, 10, 64];
const SMALL = isQuick ? 5000 : 20_000; // For measurements that need their own graph: orders of insertion, churn.
const TRUTHS = 200;
const BLOCKS = 7;
const SEED = 7;
const NUM_TOPICS = count / 100;
const graphOptions = { m: 32, efConstruction: 200 };

const cacheFolder = '.cache/bench-memory';
const cache = join(cacheFolder, `${count}-${dim}-${SEED}-m32-efc200-v1`);
const log = (line: string): void => console.error(line);
const warn = ({ message }: { message: string }): void => log(message);
const range = (length: number): number[] => Array.from({ length }, (_, i) => i + 1);

log(`${count} vectors of ${dim} values around ${NUM_TOPICS} topics …`);
const { vectors, topics, queries } = makeClusteredVectors(count, numQueries, dim, NUM_TOPICS, SEED);
const queryAt = (i: number): Float32Array => queries.subarray(i * dim, (i + 1) * dim);
const vectorAt = (i: number): Float32Array => vectors.subarray(i * dim, (i + 1) * dim);

const native = await createKernelFactory('native', { numThreads: 2, types: ['F32'], warn });
const wasm = await createKernelFactory('wasm', { numThreads: 2, types: ['F32'], warn });

type Filter = { has(key: number): boolean; size: number; keys(): Iterable<number> };
const keysOf = (index: VectorIndex, query: number, filter?: Filter): number[] =>
  index.search({ vector: queryAt(query), k, ef, ...(filter && { filter }) }).map((hit) => hit.key);

function recallOf(search: (query: number) => readonly number[], truth: readonly ReadonlySet<number>[]): number {
  const numHits = truth.reduce((sum, set, i) => sum + search(i).filter((key) => set.has(key)).length, 0);
  return numHits / truth.reduce((sum, set) => sum + set.size, 0);
}
const truthOf = (exact: VectorIndex, filter?: Filter): Set<number>[] =>
  Array.from({ length: TRUTHS }, (_, i) => new Set(keysOf(exact, i, filter)));

async function fill(index: VectorIndex, order: readonly number[]): Promise<number> {
  const data = new Float32Array(order.length * dim);
  order.forEach((from, i) => data.set(vectorAt(from), i * dim));
  const began = performance.now();
  await index.addMany(order.map((from) => from + 1), data); // prettier-ignore
  return performance.now() - began;
}

// The whole set: truth, graph, file.
const all = range(count).map((key) => key - 1);
const exact = await createExactIndex({ kernels: native, dim, capacity: count });
await fill(exact, all);
const truth = truthOf(exact);
const key = new Uint8Array(32).fill(1);
const path = keptPath(cacheFolder, `${count}-${dim}-${SEED}-m32-efc200-vectors`, versionOf(['memory/vector-index']));
const openFile = (from = path) => openVectorFile({ path: from, key, identity: ['bench'] });
let buildMs = 0;
if (!existsSync(path)) {
  log('building the graph …');
  const index = await createHnswIndex({ kernels: native, dim, capacity: count, numThreads: 2, ...graphOptions });
  buildMs = await fill(index, all);
  // Renamed when complete, so that an interrupted run leaves no partial file.
  rmSync(`${path}.part`, { force: true });
  const file = openFile(`${path}.part`);
  index.save(file, 1);
  file.close();
  renameSync(`${path}.part`, path);
  await index.dispose();
}
async function reopen(kernels: typeof native): Promise<{ index: VectorIndex; ms: number }> {
  const began = performance.now();
  const file = openFile();
  const { index } = (await openVectorIndex({ kernels, dim, ...graphOptions }, file))!;
  const ms = performance.now() - began;
  file.close();
  return { index, ms };
}
const reopened: number[] = [];
for (let i = 0; i < 3; i++) {
  const { index, ms } = await reopen(native);
  reopened.push(ms);
  await index.dispose();
}
const { index: ours, ms: lastMs } = await reopen(native);
reopened.push(lastMs);
const { index: oursWasm } = await reopen(wasm);

log('building the graphs of the peers …');
const peerData = { dim, vectors, queries, ...graphOptions, ef, k, cache };
const peers = [openUsearch(peerData), openHnswlib(peerData)];

// Interleaved blocks of queries, so that other load on the machine affects all alike.
const contestants = [
  { name: 'native', buildMs, search: (query: number) => keysOf(ours, query), perSecond: [] as number[] },
  { name: 'wasm', buildMs: 0, search: (query: number) => keysOf(oursWasm, query), perSecond: [] as number[] },
  ...peers.map((peer) => ({ ...peer, perSecond: [] as number[] })),
];
log('queries …');
for (let block = 0; block <= BLOCKS; block++) {
  for (const { search, perSecond } of contestants) {
    const began = performance.now();
    for (let i = 0; i < numQueries; i++) search(i);
    // The first block warms up.
    if (block > 0) perSecond.push((numQueries * 1000) / (performance.now() - began));
  }
}
const [nativeRun, wasmRun, usearch, hnswlib] = contestants as [(typeof contestants)[0], (typeof contestants)[0], (typeof contestants)[0], (typeof contestants)[0]]; // prettier-ignore
printTable([
  ['', `recall@${k}`, 'queries/s', 'build s'],
  ...contestants.map(({ name, search, perSecond, buildMs: ms }) => [
    name,
    recallOf(search, truth).toFixed(4),
    median(perSecond).toFixed(0),
    ms === 0 ? 'kept' : (ms / 1000).toFixed(1),
  ]),
]);
/** The median over adjacent blocks. */
const ratio = (a: { perSecond: number[] }, b: { perSecond: number[] }): number =>
  median(a.perSecond.map((value, i) => value / b.perSecond[i]!));

log('filters …');
const filterRows = [1, 10, 50].map((percent) => {
  const passing = new Set(range(count).filter((each) => (each * 7919) % 100 < percent));
  const filter: Filter = { has: (each) => passing.has(each), size: passing.size, keys: () => passing };
  const best = truthOf(exact, filter);
  const began = performance.now();
  const recall = recallOf((query) => keysOf(ours, query, filter), best);
  return { percent, recall, ms: (performance.now() - began) / TRUTHS };
});
printTable([
  ['filter accepts', `recall@${k}`, 'ms'],
  ...filterRows.map(({ percent, recall, ms }) => [`${percent} %`, recall.toFixed(4), ms.toFixed(2)]),
]);

log(`orders of insertion and churn, ${SMALL} vectors …`);
const some = all.slice(0, SMALL);
const orders: Record<string, readonly number[]> = {
  drawn: some,
  sorted: some.toSorted((a, b) => vectorAt(a)[0]! - vectorAt(b)[0]!),
  clustered: some.toSorted((a, b) => topics[a]! - topics[b]!),
};
const smallExact = await createExactIndex({ kernels: native, dim });
await fill(smallExact, some);
const smallTruth = truthOf(smallExact);
const recallByOrder: Record<string, number> = {};
let lost = 0;
let churned = 0;
for (const [name, order] of Object.entries(orders)) {
  const index = await createHnswIndex({ kernels: native, dim, numThreads: 2, ...graphOptions });
  await fill(index, order);
  recallByOrder[name] = recallOf((query) => keysOf(index, query), smallTruth);
  if (name === 'drawn') {
    // Removes every second one and adds a third of all, half of it under old keys.
    const live = new Map(some.map((i) => [i + 1, i]));
    for (const i of some) if (i % 2 === 0 && index.delete(i + 1)) live.delete(i + 1);
    const fresh = all.slice(SMALL, SMALL + Math.floor(SMALL * 0.3));
    for (const [j, from] of fresh.entries()) {
      await index.add(j + 1, vectorAt(from));
      live.set(j + 1, from);
    }
    churned = live.size;
    for (const [key, from] of live) if (index.search({ vector: vectorAt(from), k: 1, ef })[0]!.key !== key) lost++;
  }
  await index.dispose();
}
printTable([
  ['inserted', `recall@${k}`],
  ...Object.entries(recallByOrder).map(([name, recall]) => [name, recall.toFixed(4)]),
]);
console.log(`after churn, ${lost} of ${churned} are not found by their own vector`);

const recall = recallOf(nativeRun.search, truth);
const { memoryBytes } = ours;
for (const index of [ours, oursWasm, exact, smallExact]) await index.dispose();
log(`the memory in its thread, ${count} patterns …`);
const thread = await measureMemoryThread(vectors, queries, dim, {
  folder: cacheFolder,
  parameters: `${count}-${dim}-${SEED}-store`,
});
const base = measureBaseMemory();
printTable([
  ['in its thread', 'p50', 'p99'],
  ['pattern search', `${thread.patternP50Ms.toFixed(2)} ms`, `${thread.patternP99Ms.toFixed(2)} ms`],
  ['session, in memory', '', `${thread.sessionP99Us.toFixed(1)} µs`],
  ['session, from the store', '', `${thread.sessionStoreP99Us.toFixed(0)} µs`],
  ['policy', '', `${thread.policyP99Us.toFixed(1)} µs`],
  ['audit entry, queued', '', `${thread.enqueueP99Us.toFixed(1)} µs`],
]);
console.log(
  `${thread.fill === null ? 'kept store' : `${thread.fill.putsPerSecond.toFixed(0)} patterns/s written to disk, index built in ${thread.fill.indexSeconds.toFixed(0)} s`}, ` +
    `first answer after opening in ${thread.openMs.toFixed(0)} ms; ` +
    `beyond plain Node the library takes ${base.library.toFixed(0)} MiB, with an open memory ${base.memory.toFixed(0)}, ` +
    `also with the model loader ${base.loader.toFixed(0)}`,
);

const result = {
  bench: 'memory',
  vectors: count,
  recall,
  qps_vs_usearch_native: ratio(nativeRun, usearch),
  qps_vs_hnswlib_native: ratio(nativeRun, hnswlib),
  qps_vs_usearch_wasm: ratio(wasmRun, usearch),
  pattern_p99_ms: thread.patternP99Ms,
  session_p99_us: thread.sessionP99Us,
  reopen_ms: median(reopened),
  store_open_ms: thread.openMs,
  base_memory_mb: base.memory,
  base_memory_with_loader_mb: base.loader,
  build_s: buildMs === 0 ? null : buildMs / 1000,
  memory_bytes: memoryBytes,
  file_bytes: statSync(path).size,
  recall_by_order: recallByOrder,
  recall_by_filter: Object.fromEntries(filterRows.map(({ percent, recall }) => [percent, recall])),
  lost_after_churn: lost,
};
console.log(JSON.stringify(result));
