import { z } from 'zod';
import { ROUTER_LINE } from '../../../learning/router-training/router-line.ts';
import { ADAPTER_PREFIX, adapterLine } from '../../../learning/sona/learned-adapter.ts';
import type { LearnedVersion } from '../../../learning/versions/version-log.ts';
import { refuseInput } from '../../../memory/operations/index.ts';
import { timeMs } from '../../../memory/schemas/primitives.ts';
import { type Trajectory, trajectoryFromRecord } from '../../../memory/schemas/trajectory.ts';
import type { LearningControl } from './control.ts';
import { defineLearning, model } from './define.ts';

const DAY_MS = 86_400_000;
/** Of one curve. */
const MAX_BUCKETS = 1000;
const MAX_MODELS = 32;
const PAGE = 500;

/** A version as a point of a curve; null: not measured. */
function pointOf({ version, createdMs, loop, isAccepted, metrics }: LearnedVersion) {
  const read = (name: string): number | null => metrics[name] ?? null;
  const fall = (name: string): number | null => (metrics[name] === undefined ? null : 0 - metrics[name]);
  return {
    version,
    createdMs,
    loop,
    isAccepted,
    lossBefore: read('held_out_before'),
    lossAfter: read('held_out_after'),
    gain: fall('held_out_mean'),
    gainLow: fall('held_out_high'),
    gainHigh: fall('held_out_low'),
    forgetting: read('elsewhere_mean'),
    numExamples: read('held_out_count'),
  };
}

interface Range {
  readonly fromMs: number;
  readonly toMs: number;
}

async function curveOf({ learning }: LearningControl, tenant: string, line: string, limit: number, range: Range) {
  const { versions } = learning.sona;
  const active = await versions.active(tenant, line);
  const found = await versions.history(tenant, line, limit);
  const inside = found.filter(({ createdMs }) => createdMs >= range.fromMs && createdMs < range.toMs);
  return { serves: active?.version ?? 0, points: inside.map(pointOf).toReversed() };
}

interface Bucket {
  numRequests: number;
  numRated: number;
  numUp: number;
  numDown: number;
  numCorrected: number;
  sumOfScores: number;
}

/** Counts requests by their time and ratings by theirs: an old answer may be rated today. */
function createBuckets({ fromMs, toMs }: Range, bucketMs: number) {
  const buckets = new Map<number, Bucket>();
  const at = (ms: number): Bucket | null => {
    if (ms < fromMs || ms >= toMs) return null;
    const startMs = Math.floor(ms / bucketMs) * bucketMs;
    const known = buckets.get(startMs) ?? { numRequests: 0, numRated: 0, numUp: 0, numDown: 0, numCorrected: 0, sumOfScores: 0 }; // prettier-ignore
    buckets.set(startMs, known);
    return known;
  };
  return {
    add({ createdMs, feedback }: Trajectory): void {
      const born = at(createdMs);
      if (born !== null) born.numRequests++;
      for (const { atMs, score, hasCorrection } of feedback) {
        const bucket = at(atMs);
        if (bucket === null) continue;
        if (hasCorrection) bucket.numCorrected++;
        if (score === null) continue;
        bucket.numRated++;
        bucket.sumOfScores += score;
        if (score >= 0.5) bucket.numUp++;
        else bucket.numDown++;
      }
    },
    list: () =>
      [...buckets]
        .sort(([a], [b]) => a - b)
        .map(([startMs, { sumOfScores, ...counts }]) => ({
          startMs,
          ...counts,
          meanScore: counts.numRated === 0 ? null : sumOfScores / counts.numRated,
        })),
  };
}

/** Requests are stored for a month, so a rated request is at most that much older than the range. */
async function countFeedback({ memory }: LearningControl, tenant: string, range: Range, bucketMs: number, max: number) {
  const buckets = createBuckets(range, bucketMs);
  let after: string | null = null;
  let numSeen = 0;
  do {
    const limit = Math.min(PAGE, max - numSeen);
    const page = await memory.store.find(tenant, {
      kinds: ['trajectory'],
      filter: { createdToMs: range.toMs },
      order: 'newest',
      limit,
      ...(after === null ? {} : { after }),
    });
    for (const record of page.records) buckets.add(trajectoryFromRecord(record));
    numSeen += page.records.length;
    after = page.next;
  } while (after !== null && numSeen < max);
  return { feedback: buckets.list(), isComplete: after === null };
}

/** Learning curves. */
export const seriesOperation = defineLearning({
  name: 'learn.series',
  summary: 'Curves: the loss before and after each version, gain and forgetting, and feedback by day.',
  input: z.strictObject({
    model,
    fromMs: timeMs.optional(),
    toMs: timeMs.optional(),
    bucketMs: z.int().min(60_000).max(366 * DAY_MS).default(DAY_MS), // prettier-ignore
    /** Versions of each line. */
    limit: z.int().min(1).max(1000).default(200),
    /** Requests that are looked at for feedback, the newest first. */
    maxRequests: z.int().min(1).max(20_000).default(5000),
  }),
  async run(control, tenant, { model: named, fromMs, toMs, bucketMs, limit, maxRequests }) {
    const untilMs = toMs ?? Math.floor(control.memory.services.now()) + 1;
    const range = { fromMs: fromMs ?? Math.max(0, untilMs - 30 * DAY_MS), toMs: untilMs };
    if (range.fromMs >= range.toMs) throw refuseInput('fromMs must be before toMs', 'fromMs');
    if ((range.toMs - range.fromMs) / bucketMs > MAX_BUCKETS) {
      throw refuseInput(`the range has more than ${MAX_BUCKETS} buckets of ${bucketMs} ms`, 'bucketMs');
    }
    const lines = await control.learning.sona.versions.lines(tenant);
    const learned = lines.filter((line) => line.startsWith(ADAPTER_PREFIX)).map((line) => line.slice(ADAPTER_PREFIX.length)); // prettier-ignore
    const names = named === undefined ? learned.slice(0, MAX_MODELS) : [named];
    const adapters: object[] = [];
    for (const name of names) {
      adapters.push({ model: name, ...(await curveOf(control, tenant, adapterLine(name), limit, range)) });
    }
    return {
      ...range,
      bucketMs,
      adapters,
      router: await curveOf(control, tenant, ROUTER_LINE, limit, range),
      ...(await countFeedback(control, tenant, range, bucketMs, maxRequests)),
    };
  },
});
