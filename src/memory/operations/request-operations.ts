import { z } from 'zod';
import type { Memory } from '../memory.ts';
import { uuid } from '../schemas/primitives.ts';
import { type Trajectory, trajectoryFromRecord } from '../schemas/trajectory.ts';
import type { LatencyBreakdown } from '../schemas/audit.ts';
import { recordText } from '../search/record-text.ts';
import type { FoundEntry } from '../audit/index.ts';
import { after, includeVectors, isVisible, limit, minSimilarity, previewOf } from './inputs.ts';
import { defineOperation, notFound, refuseInput, type MemoryOperation } from './operation.ts';
import { plainEntry } from './plain.ts';

/** Entries of one request to look at. */
const MAX_ENTRIES = 100;

async function findRequest(memory: Memory, tenant: string, requestId: string): Promise<FoundEntry> {
  // A request with tools has an entry for each answer and each call: the last answer counts.
  const { entries } = await memory.audit.search(tenant, { requestId, limit: MAX_ENTRIES });
  const found = entries.find(({ entry }) => entry.tool === undefined) ?? entries[0];
  if (found !== undefined) return found;
  throw notFound(`there is no request ${requestId}`);
}

/** The trajectories of these requests by id, without expired ones. */
async function judgementsOf(
  memory: Memory,
  tenant: string,
  requestIds: readonly string[],
): Promise<ReadonlyMap<string, Trajectory>> {
  if (requestIds.length === 0) return new Map();
  const found = await memory.store.find(tenant, {
    kinds: ['trajectory'],
    filter: { fields: [{ field: 'requestId', is: 'in', values: requestIds }] },
    order: 'newest',
    limit: requestIds.length,
  });
  const seen = found.records.filter((record) => isVisible(memory, record)).map(trajectoryFromRecord);
  return new Map(seen.map((one) => [one.requestId, one]));
}

interface Span {
  readonly name: string;
  readonly startMs: number;
  readonly durationMs: number;
}

/** The steps before an answer, in order. */
const STEPS = ['wait', 'embedding', 'retrieval', 'policy', 'routing'] as const;
const UNTIL_FIRST_TOKEN = ['queue', 'prompt'] as const;

/** The time of a request as consecutive spans; unexplained time comes before the answer. */
function spansOf(latency: LatencyBreakdown): Span[] {
  const { totalMs, generationMs, ttftMs, writeMs } = latency;
  const spans: Span[] = [];
  let atMs = 0;
  const add = (name: string, durationMs: number | null): void => {
    if (durationMs !== null && durationMs > 0) spans.push({ name, startMs: atMs, durationMs });
    atMs += durationMs ?? 0;
  };
  for (const name of STEPS) add(name, latency[`${name}Ms`]);
  add('other', totalMs - generationMs - atMs);
  if (ttftMs === null || ttftMs <= atMs || ttftMs >= totalMs) add('generation', totalMs - atMs);
  else {
    // Older entries lack these figures, and the clocks of two threads differ: the rest counts as `firstToken`.
    for (const name of UNTIL_FIRST_TOKEN) add(name, Math.min(latency[`${name}Ms`] ?? 0, ttftMs - atMs));
    add('firstToken', ttftMs - atMs);
    add('tokens', totalMs - atMs);
  }
  add('write', writeMs);
  return spans;
}

function plainJudgement({ verdict, quality, correction, feedback, route, parameters }: Trajectory) {
  const { propensity, temperature = null, topP = null } = parameters;
  return { verdict, quality, correction, feedback, route: route ?? null, propensity, temperature, topP };
}

const show = defineOperation({
  name: 'audit.show',
  summary: 'One request with its answer, time by step, sources and feedback.',
  input: z.strictObject({ requestId: uuid, includeVectors }),
  async run(memory, tenant, { requestId, includeVectors: hasVectors }) {
    const found = await findRequest(memory, tenant, requestId);
    const { contextDocIds, latency } = found.entry;
    const records = contextDocIds.length === 0 ? [] : await memory.store.get(tenant, contextDocIds);
    const judged = (await judgementsOf(memory, tenant, [requestId])).get(requestId);
    return {
      entry: plainEntry(found, hasVectors),
      spans: spansOf(latency),
      sources: records
        .filter((record) => isVisible(memory, record))
        .map((record) => ({ id: record.id, kind: record.kind, text: previewOf(recordText(record)) })),
      judged: judged === undefined ? null : plainJudgement(judged),
    };
  },
});

const similar = defineOperation({
  name: 'audit.similar',
  summary: 'The requests most similar to one, by meaning.',
  input: z.strictObject({
    requestId: uuid,
    limit: z.int().min(1).max(100).default(10),
    minSimilarity: minSimilarity.default(0),
    includeVectors,
  }),
  async run(memory, tenant, { requestId, limit: k, minSimilarity: least, includeVectors: hasVectors }) {
    const { queryEmbedding: vector, space } = (await findRequest(memory, tenant, requestId)).entry;
    if (vector === null || space === null) {
      throw refuseInput(`request ${requestId} has no vector`, 'requestId');
    }
    const near = { vector, space, minSimilarity: least };
    const { entries } = await memory.audit.search(tenant, { similarTo: near, limit: k + 1 });
    const others = entries.filter(({ entry }) => entry.requestId !== requestId).slice(0, k);
    return { entries: others.map((entry) => plainEntry(entry, hasVectors)) };
  },
});

const decisions = defineOperation({
  name: 'audit.decisions',
  summary: 'Requests whose model a router chose, the newest first, with the inputs of the decision.',
  input: z.strictObject({
    limit: limit.max(200).default(50),
    after: after.optional(),
    maxScanned: z.int().min(1).max(10_000).default(2000),
  }),
  async run(memory, tenant, { limit: most, after: from, maxScanned }) {
    const found: FoundEntry[] = [];
    let next: string | null = from ?? null;
    let numScanned = 0;
    do {
      const page = await memory.audit.search(tenant, {
        limit: Math.min(most - found.length, maxScanned - numScanned),
        ...(next === null ? {} : { after: next }),
      });
      found.push(...page.entries.filter(({ entry }) => entry.routing !== null));
      numScanned += page.entries.length;
      next = page.next;
    } while (next !== null && found.length < most && numScanned < maxScanned);
    const judged = await judgementsOf(memory, tenant, found.map(({ entry }) => entry.requestId)); // prettier-ignore
    return {
      decisions: found.map(({ entry }) => {
        const known = judged.get(entry.requestId);
        return {
          requestId: entry.requestId,
          timestampMs: entry.timestampMs,
          query: previewOf(entry.query),
          model: entry.model,
          routing: entry.routing,
          candidate: known?.route?.candidate ?? null,
          propensity: known?.parameters.propensity ?? null,
          load: known?.route?.load ?? null,
          latencyMs: known?.route?.latencyMs ?? null,
          similarities: known?.route?.similarities ?? null,
          verdict: known?.verdict ?? null,
          quality: known?.quality ?? entry.quality,
          routingMs: entry.latency.routingMs,
          hasError: entry.error !== null,
        };
      }),
      next,
      isComplete: next === null || found.length === most,
    };
  },
});

export const requestOperations: readonly MemoryOperation[] = [show, similar, decisions];
