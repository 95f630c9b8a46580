import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { MemoryServices } from '../../../src/memory/common/services.ts';
import type { NewEdge } from '../../../src/memory/graph/graph.ts';
import type { RerankRequest } from '../../../src/memory/search/rerank.ts';
import type { RankExample } from '../../../src/learning/graph-attention/types.ts';
import { importBuilt } from '../dist.ts';

const { createRandom } = await importBuilt<typeof import('../../../src/core/random.ts')>('core/random');
const { createMemoryGraph } = await importBuilt<typeof import('../../../src/memory/graph/graph.ts')>('memory/graph/graph'); // prettier-ignore
const { nodeToRecord } = await importBuilt<typeof import('../../../src/memory/schemas/node.ts')>('memory/schemas/node'); // prettier-ignore
const { createMemorySearch } = await importBuilt<typeof import('../../../src/memory/search/search.ts')>('memory/search/search'); // prettier-ignore
const { createInMemoryStore } = await importBuilt<typeof import('../../../src/memory/store/in-memory/in-memory-store.ts')>('memory/store/in-memory/in-memory-store'); // prettier-ignore
const { openTableEmbedder } = await importBuilt<typeof import('../../../src/node/memory/table-embedder.ts')>('node/memory/table-embedder'); // prettier-ignore
const { toRankQuery } = await importBuilt<typeof import('../../../src/learning/graph-attention/reranker.ts')>('learning/graph-attention/reranker'); // prettier-ignore

const SHARED = '../shared';
const TABLE = join(SHARED, 'suites/routing/banking77-train.csv');
const MODEL = join(SHARED, 'models/stories15M-q8_0.gguf');
const TENANT = 'bench';
const DAY_MS = 86_400_000;
const NOW_MS = Date.UTC(2026, 0, 1);

/** Intents of each part, and queries per intent: no intent is in two parts. */
const PARTS = { train: [35, 12], validation: [10, 12], selection: [12, 15], test: [20, 20] } as const;
export type Part = keyof typeof PARTS;
const DOCUMENTS_PER_INTENT = 40;
/** Edges of one document: to others of its intent, to any with the same relation, to any with a meaningless relation. */
const EDGES = { same: 3, noise: 1, idle: 1 };

export interface Query extends RankExample {
  readonly intent: string;
}
export type QueryParts = Readonly<Record<Part, readonly Query[]>>;

/** Why data are missing; null: available. */
export function whyNoRerankData(): string | null {
  const missing = [TABLE, MODEL].filter((path) => !existsSync(path));
  return missing.length === 0 ? null : `${missing.join(' and ')} not found`;
}

interface Utterance {
  readonly text: string;
  readonly intent: string;
  readonly vector: Float32Array;
}

/**
 * Retrieves like the memory for every query: the best of the nearest 64 and their linked documents; those of its intent count as used.
 */
export async function retrieveQueries(seed: number, isRewired: boolean): Promise<QueryParts> {
  const random = createRandom(seed);
  const pick = (count: number): number => Math.floor(random.next() * count);
  const shuffled = <T>(items: readonly T[]): T[] => {
    const list = [...items];
    for (let i = list.length - 1; i > 0; i--) {
      const j = pick(i + 1);
      [list[i], list[j]] = [list[j]!, list[i]!];
    }
    return list;
  };
  const embedder = openTableEmbedder(MODEL);
  const byIntent = new Map<string, string[]>();
  for (const { text, intent } of readTable()) byIntent.set(intent, [...(byIntent.get(intent) ?? []), text]);
  const intents = shuffled([...byIntent.keys()].filter((intent) => byIntent.get(intent)!.length >= 60));

  const documents: Utterance[] = [];
  const queries: Record<Part, Utterance[]> = { train: [], validation: [], selection: [], test: [] };
  let at = 0;
  for (const [part, [numIntents, numQueries]] of Object.entries(PARTS) as [Part, readonly [number, number]][]) {
    for (const intent of intents.slice(at, (at += numIntents))) {
      const all = shuffled(byIntent.get(intent)!).map((text) => ({ text, intent, vector: embedder.embed(text) }));
      documents.push(...all.slice(0, DOCUMENTS_PER_INTENT));
      queries[part].push(...all.slice(DOCUMENTS_PER_INTENT, DOCUMENTS_PER_INTENT + numQueries));
    }
  }
  embedder.close();

  let nowMs = NOW_MS;
  let numIds = 0;
  const services: MemoryServices = {
    now: () => nowMs,
    newId: () => `0199a0b4-7c00-7000-8000-${(++numIds).toString(16).padStart(12, '0')}`,
    sha256: (bytes) => createHash('sha256').update(bytes).digest(),
  };
  const store = createInMemoryStore({ now: services.now });
  const graph = createMemoryGraph(store, services);
  const ids = documents.map(() => services.newId());
  const intentOf = new Map(ids.map((id, i) => [id, documents[i]!.intent]));
  const vectorOf = new Map(ids.map((id, i) => [id, documents[i]!.vector]));
  const records = documents.map(({ text, vector }, i) => {
    const node = {
      id: ids[i]!,
      kind: 'document' as const,
      text,
      source: null,
      topic: null,
      quality: null,
      metadata: {},
    };
    return nodeToRecord({ ...node, expiresMs: null, embedding: vector, space: embedder.fingerprint }, TENANT);
  });
  for (let from = 0; from < records.length; from += 500) await store.put(records.slice(from, from + 500));

  const edges: NewEdge[] = [];
  documents.forEach(({ intent }, i) => {
    const alike = documents.flatMap((other, j) => (other.intent === intent && j !== i ? [j] : []));
    const link = (to: number, relation: string): void => {
      const features = { weight: 0.5 + random.next(), confidence: 0.5 + 0.5 * random.next() };
      // Always drawn, so that both worlds have the same queries and documents.
      const end = pick(documents.length);
      edges.push({ from: ids[i]!, to: ids[isRewired ? end : to]!, relation, ...features });
    };
    for (let n = 0; n < EDGES.same; n++) link(alike[pick(alike.length)]!, 'same-topic');
    for (let n = 0; n < EDGES.noise; n++) link(pick(documents.length), 'same-topic');
    for (let n = 0; n < EDGES.idle; n++) link(pick(documents.length), 'follows');
  });
  // Written over two months, so that edges differ in age.
  const groups = 8;
  for (let group = 0; group < groups; group++) {
    nowMs = NOW_MS - (groups - group) * 7 * DAY_MS;
    await graph.link(
      TENANT,
      edges.filter((edge, i) => i % groups === group && edge.from !== edge.to),
    );
  }
  nowMs = NOW_MS;

  let request: RerankRequest | null = null;
  const search = createMemorySearch({
    store,
    services,
    graph,
    embedder: { ...embedder, embed: async (text) => embedder.embed(text) },
    rerank: () => ({
      of: () => (candidate) => {
        request = candidate;
        return null;
      },
      forget() {},
    }),
  });
  const retrieve = async ({ vector, intent }: Utterance): Promise<Query> => {
    await search.search(TENANT, { vector, k: 10, numCandidates: 64, expandHops: 1 });
    const { candidates } = request!;
    const { query, candidates: ranked } = toRankQuery(request!);
    return {
      intent,
      // Questions of one intent are one conversation: they have the same right documents.
      group: intent,
      query,
      // One vector per document, not per retrieval: a hundred thousand would not fit any cache.
      candidates: ranked.map((one, i) => ({ ...one, vector: vectorOf.get(candidates[i]!.record.id)! })),
      used: candidates.map(({ record }) => intentOf.get(record.id) === intent),
    };
  };
  const retrieved: Record<Part, Query[]> = { train: [], validation: [], selection: [], test: [] };
  for (const part of Object.keys(PARTS) as Part[]) {
    for (const query of queries[part]) retrieved[part].push(await retrieve(query));
  }
  await store.close();
  return retrieved;
}

/** Quoted fields may contain commas, line ends and doubled quotes. */
function readTable(): { text: string; intent: string }[] {
  const rows = readFileSync(TABLE, 'utf8').matchAll(/(?:"((?:[^"]|"")*)"|([^",\n]*)),([a-zA-Z_?]+)\r?(?:\n|$)/g);
  return [...rows]
    .slice(1)
    .map(([, quoted, plain, intent]) => ({ text: (quoted?.replaceAll('""', '"') ?? plain!).trim(), intent: intent! }))
    .filter(({ text }) => text !== '');
}
