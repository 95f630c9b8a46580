import { RuvLLMError } from '../../core/errors.ts';
import type { CommandContext } from '../command.ts';
import type { Flag } from '../flags.ts';
import {
  actionRunner,
  type Actions,
  AFTER_FLAG,
  flagsOf,
  helpOf,
  limitFlag,
  MIN_SIMILARITY_FLAG,
  noteNextPage,
  OUTPUT_FLAG,
  pick,
} from '../memory/action.ts';
import { ifForbidden } from '../memory/client.ts';
import { TIME_FLAGS } from '../memory/readers.ts';
import { columnsOf, dateOf, oneLine, roundTo } from '../memory/show.ts';
import { writePages } from '../memory/transfer.ts';
import { conflictError } from '../usage-error.ts';
import { readNumber, readSeconds } from '../values.ts';

/** Filters of requests, with the operation's name for each. */
const FILTERS: readonly (Flag & { readonly key: string })[] = [
  { key: 'fromMs', ...TIME_FLAGS[0] },
  { key: 'toMs', ...TIME_FLAGS[1] },
  { key: 'minQuality', name: '--min-quality', value: 'n', read: readNumber, description: 'minimum rating, 0 to 1' },
  { key: 'maxQuality', name: '--max-quality', value: 'n', read: readNumber, description: 'maximum rating' },
  { key: 'minTotalMs', name: '--min-ms', value: 'n', read: readNumber, description: 'minimum latency in milliseconds' },
  { key: 'maxTotalMs', name: '--max-ms', value: 'n', read: readNumber, description: 'maximum latency in milliseconds' },
  { key: 'model', name: '--of-model', value: 'name', description: 'answered by this model' },
  { key: 'sessionId', name: '--session', value: 'id', description: 'in this session' },
  { key: 'requestId', name: '--request', value: 'id', description: 'with this request id' },
  { key: 'errorCode', name: '--error', value: 'code', description: 'failed with this error code' },
];
const STATE_FLAGS: readonly Flag[] = [
  { name: '--failed', value: null, description: 'only failed requests' },
  { name: '--succeeded', value: null, description: 'only successful requests' },
];

function readFilters(context: CommandContext): Record<string, unknown> {
  const { values } = context;
  const [hasFailed, hasSucceeded] = [values['--failed'] === true, values['--succeeded'] === true];
  if (hasFailed && hasSucceeded) throw conflictError('--failed', '--succeeded');
  return {
    ...pick(context, Object.fromEntries(FILTERS.map(({ name, key }) => [name, key]))),
    ...(hasFailed || hasSucceeded ? { hasError: hasFailed } : {}),
  };
}

interface SearchPage {
  readonly entries: readonly {
    readonly createdMs: number;
    readonly similarity: number | null;
    /** Absent from older servers. */
    readonly rating?: { readonly quality: number; readonly verdict: string } | null;
    readonly entry: {
      readonly requestId: string;
      readonly model: string;
      readonly quality: number | null;
      readonly latency: { readonly totalMs: number } & Readonly<Record<string, number | null>>;
      readonly query: string;
      readonly response: string;
      readonly error: { readonly code: string; readonly message: string } | null;
    };
  }[];
  readonly next: string | null;
  readonly isComplete: boolean;
}

interface Percentiles {
  readonly p50: number;
  readonly p95: number;
  readonly p99: number;
  readonly max: number;
}
interface Summary {
  readonly count: number;
  /** Absent from older servers. */
  readonly numRated?: number;
  readonly numErrors: number;
  readonly errorRate: number | null;
  readonly meanQuality: number | null;
  readonly totalMs: Percentiles | null;
  readonly ttftMs: Percentiles | null;
}
interface Aggregate extends Summary {
  readonly trend: readonly (Summary & { readonly startMs: number })[];
  readonly models: readonly { model: string; count: number; share: number; numErrors: number }[];
  readonly errors: readonly { code: string; count: number }[];
  readonly isComplete: boolean;
}
interface Health {
  readonly audit: { readonly numDropped: number; readonly numRefused: number; readonly numQueued: number; readonly gaps: readonly object[] }; // prettier-ignore
}
interface Report {
  readonly isIntact: boolean;
  readonly numChecked: number;
  readonly numArchived: number;
  readonly numDropped: number;
  readonly head: { readonly sequence: number; readonly hash: string };
  readonly brokenAt: { readonly sequence: number; readonly reason: string } | null;
  readonly gaps: readonly object[];
}

/** The parts of a latency in order. */
export function partsOf(latency: Readonly<Record<string, number | null>>): string {
  return Object.entries(latency)
    .filter(([name, ms]) => name !== 'totalMs' && ms !== null && ms > 0)
    .map(([name, ms]) => `${name.replace(/Ms$/, '')} ${roundTo(ms!, 3)} ms`)
    .join(' · ');
}

const AUDIT_ACTIONS: Actions = {
  search: {
    args: '[words]',
    description: 'search requests by words, by similarity (--similar) and by any combination of filters',
    flags: [
      { name: '--similar', value: 'text', description: 'similar to this text; nearest first' },
      MIN_SIMILARITY_FLAG,
      ...FILTERS,
      ...STATE_FLAGS,
      { name: '--order', value: 'newest|oldest', description: 'sort order; default newest' },
      limitFlag('results', 50),
      AFTER_FLAG,
    ],
    needsModel: ({ values }) => values['--similar'] !== undefined,
    async run(client, context, [text]) {
      const { io, output } = context;
      const names = { '--similar': 'similarTo', '--min-similarity': 'minSimilarity', '--order': 'order', '--limit': 'limit', '--after': 'after' }; // prettier-ignore
      const input = { ...readFilters(context), ...pick(context, names), ...(text === undefined ? {} : { text }) };
      const page = await client.call<SearchPage>('audit.search', input);
      output.document(page);
      const width = columnsOf(io) - 4;
      for (const { createdMs, similarity, entry, rating } of page.entries) {
        const state = entry.error === null ? 'ok' : oneLine(entry.error.code, 30);
        const quality = rating?.quality ?? entry.quality;
        const ratingText = quality === null ? '' : `  quality ${roundTo(quality, 2)}`;
        const similarityText = similarity === null ? '' : `  ${similarity.toFixed(3)}`;
        output.lines(
          `${dateOf(createdMs)}  ${entry.requestId}  ${oneLine(entry.model, 30)}  ${roundTo(entry.latency.totalMs, 0)} ms  ${state}${ratingText}${similarityText}`,
        );
        if (context.values['--request'] !== undefined) output.lines(`  ${partsOf(entry.latency)}`);
        output.lines(
          `  > ${oneLine(entry.query, width)}\n  < ${oneLine(entry.error?.message ?? entry.response, width)}`,
        );
      }
      if (page.entries.length === 0) output.note('no requests match these filters');
      noteNextPage(output, page.next);
      if (!page.isComplete) output.note('incomplete: not all requests were searched');
    },
  },
  stats: {
    args: '',
    description: 'show counts, percentiles, trends, models, errors and lost entries',
    flags: [
      ...FILTERS,
      ...STATE_FLAGS,
      { name: '--bucket', value: 'seconds', read: readSeconds, description: 'trend interval; default one hour' },
    ],
    async run(client, context) {
      const { output, values } = context;
      const bucket = values['--bucket'] as number | undefined;
      const input = { ...readFilters(context), ...(bucket === undefined ? {} : { bucketMs: Math.round(bucket) }) };
      const stats = await client.call<Aggregate>('audit.stats', input);
      const health = await client.call<Health>('memory.health', {}).catch(ifForbidden);
      output.document({ ...stats, log: health?.audit ?? null });
      const times = (name: string, { totalMs, ttftMs }: Summary, which: 'totalMs' | 'ttftMs'): string[] => {
        const row = which === 'totalMs' ? totalMs : ttftMs;
        return [name, ...[row?.p50, row?.p95, row?.p99, row?.max].map((value) => roundTo(value ?? null, 0))];
      };
      output.lines(
        `${stats.count} requests, ${stats.numErrors} failed, mean quality ${roundTo(stats.meanQuality, 2)}${stats.numRated === undefined ? '' : ` (${stats.numRated} rated)`}`,
      );
      output.table(
        ['MILLISECONDS', 'p50', 'p95', 'p99', 'max'],
        [times('total', stats, 'totalMs'), times('time to first token', stats, 'ttftMs')],
      );
      const addTable = (head: readonly string[], rows: readonly (readonly string[])[]): void => {
        if (rows.length === 0) return;
        output.lines('');
        output.table(head, rows);
      };
      const models = stats.models.map(({ count, share, numErrors, model }) => [String(count), `${(share * 100).toFixed(0)} %`, String(numErrors), model]); // prettier-ignore
      addTable(['REQUESTS', 'SHARE', 'FAILED', 'MODEL'], models);
      const errors = stats.errors.map(({ code, count }) => [String(count), code]);
      addTable(['FAILED', 'CODE'], errors);
      const trend = stats.trend.slice(-24).map((part) => [dateOf(part.startMs), String(part.count), String(part.numErrors), roundTo(part.totalMs?.p95 ?? null, 0)]); // prettier-ignore
      addTable(['FROM (UTC)', 'REQUESTS', 'FAILED', 'p95 ms'], trend);
      if (health !== null) {
        const { numDropped, numRefused, gaps } = health.audit;
        output.lines(`\naudit log: ${numDropped} dropped, ${numRefused} refused, ${gaps.length} gaps`);
      }
      if (!stats.isComplete) output.note('incomplete: the oldest requests were not counted');
    },
  },
  verify: {
    args: '',
    description: 'recompute every hash of the log; exits with 1 if it was altered',
    flags: [],
    async run(client, { output }) {
      const report = await client.call<Report>('audit.verify', {});
      if (report.brokenAt !== null) {
        const { sequence, reason } = report.brokenAt;
        throw new RuvLLMError('io', `the audit log is broken at entry ${sequence}: ${reason}`, {
          data: { sequence, numChecked: report.numChecked },
        });
      }
      output.document(report);
      const { numChecked, numArchived, numDropped, gaps, head } = report;
      output.lines(`intact: ${numChecked} entries (${numArchived} archived), ${numDropped} dropped, ${gaps.length} gaps`); // prettier-ignore
      output.lines(`head ${head.sequence} ${head.hash}`);
    },
  },
  export: {
    args: '',
    description: 'write the log as JSON lines in chain order, including archived entries',
    flags: [OUTPUT_FLAG, { name: '--vectors', value: null, description: 'include embeddings' }],
    async run(client, context) {
      const { output, values } = context;
      const input = { includeVectors: values['--vectors'] === true };
      const itemsOf = ({ entries }: { entries: object[]; next: unknown }) => entries;
      const { count, items } = await writePages(client, context, { operation: 'audit.export', input, itemsOf, label: 'exporting' }); // prettier-ignore
      output.document({ count, ...(items === null ? { path: values['--output'] } : { entries: items }) });
      output.note(`${count} entries`);
    },
  },
};

export const AUDIT_FLAGS = flagsOf(AUDIT_ACTIONS);
export const AUDIT_HELP = helpOf(
  AUDIT_ACTIONS,
  'The audit log records every request and its outcome. To detect truncation later, keep a copy of the head elsewhere.',
);
export const audit = actionRunner('audit', AUDIT_ACTIONS);
