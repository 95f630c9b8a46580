import { RuvLLMError } from '../../core/errors.ts';
import type { CommandContext } from '../command.ts';
import type { Flag } from '../flags.ts';
import { actionRunner, type Actions, flagsOf, helpOf, pick } from '../memory/action.ts';
import { readTime } from '../memory/readers.ts';
import { columnsOf, dateOf, oneLine, roundTo } from '../memory/show.ts';
import { writePages } from '../memory/transfer.ts';
import { usageError } from '../usage-error.ts';
import { readInteger, readNumber, readSeconds } from '../values.ts';
import { ifForbidden } from './memory.ts';

/** Conditions of requests: the flag, and what the operation calls it. */
const CONDITIONS: readonly (Flag & { readonly key: string })[] = [
  { key: 'fromMs', name: '--from', value: 'time', read: readTime, description: 'not before: 2026-11-15, or 7d (ago)' },
  { key: 'toMs', name: '--to', value: 'time', read: readTime, description: 'before' },
  { key: 'minQuality', name: '--min-quality', value: 'n', read: readNumber, description: 'rated 0 to 1, at least' },
  { key: 'maxQuality', name: '--max-quality', value: 'n', read: readNumber, description: 'rated at most' },
  {
    key: 'minTotalMs',
    name: '--min-ms',
    value: 'n',
    read: readNumber,
    description: 'took at least so many milliseconds',
  },
  { key: 'maxTotalMs', name: '--max-ms', value: 'n', read: readNumber, description: 'took at most so many' },
  { key: 'model', name: '--of-model', value: 'name', description: 'answered by this model' },
  { key: 'sessionId', name: '--session', value: 'id', description: 'of this session' },
  { key: 'requestId', name: '--request', value: 'id', description: 'this request' },
  { key: 'errorCode', name: '--error', value: 'code', description: 'failed with this code' },
];
const STATE_FLAGS: readonly Flag[] = [
  { name: '--failed', value: null, description: 'only those that failed' },
  { name: '--succeeded', value: null, description: 'only those that did not' },
];

function readConditions(context: CommandContext): Record<string, unknown> {
  const { values } = context;
  const [hasFailed, hasSucceeded] = [values['--failed'] === true, values['--succeeded'] === true];
  if (hasFailed && hasSucceeded) throw usageError('--failed and --succeeded together are none', '--failed');
  return {
    ...pick(context, Object.fromEntries(CONDITIONS.map(({ name, key }) => [name, key]))),
    ...(hasFailed || hasSucceeded ? { hasError: hasFailed } : {}),
  };
}

interface Found {
  readonly entries: readonly {
    readonly createdMs: number;
    readonly similarity: number | null;
    /** Not from a server of an older version. */
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
  /** Not from a server of an older version. */
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

/** Where the time went, in the order in which it went there; the engine's own parts lie within its answer. */
export function partsOf(latency: Readonly<Record<string, number | null>>): string {
  return Object.entries(latency)
    .filter(([name, ms]) => name !== 'totalMs' && ms !== null && ms > 0)
    .map(([name, ms]) => `${name.replace(/Ms$/, '')} ${roundTo(ms!, 3)} ms`)
    .join(' · ');
}

const AUDIT_ACTIONS: Actions = {
  search: {
    args: '[words]',
    description: 'find requests: by words in them, by meaning (--similar), and by every condition at once',
    flags: [
      { name: '--similar', value: 'text', description: 'like this one, by meaning; the nearest first' },
      { name: '--min-similarity', value: 'n', read: readNumber, description: '-1 to 1' },
      ...CONDITIONS,
      ...STATE_FLAGS,
      { name: '--order', value: 'newest|oldest', description: 'default newest' },
      { name: '--limit', value: 'n', read: readInteger, description: 'default 50' },
      { name: '--after', value: 'next', description: 'go on behind a page: its "next"' },
    ],
    needsModel: ({ values }) => values['--similar'] !== undefined,
    async run(client, context, [text]) {
      const { io, output } = context;
      const names = { '--similar': 'similarTo', '--min-similarity': 'minSimilarity', '--order': 'order', '--limit': 'limit', '--after': 'after' }; // prettier-ignore
      const input = { ...readConditions(context), ...pick(context, names), ...(text === undefined ? {} : { text }) };
      const page = await client.call<Found>('audit.search', input);
      output.document(page);
      const room = columnsOf(io) - 4;
      for (const { createdMs, similarity, entry, rating } of page.entries) {
        const state = entry.error === null ? 'ok' : oneLine(entry.error.code, 30);
        const quality = rating?.quality ?? entry.quality;
        const rated = quality === null ? '' : `  quality ${roundTo(quality, 2)}`;
        const near = similarity === null ? '' : `  ${similarity.toFixed(3)}`;
        output.lines(
          `${dateOf(createdMs)}  ${entry.requestId}  ${oneLine(entry.model, 30)}  ${roundTo(entry.latency.totalMs, 0)} ms  ${state}${rated}${near}`,
        );
        if (context.values['--request'] !== undefined) output.lines(`  ${partsOf(entry.latency)}`);
        output.lines(`  > ${oneLine(entry.query, room)}\n  < ${oneLine(entry.error?.message ?? entry.response, room)}`);
      }
      if (page.entries.length === 0) output.note('nothing was found');
      if (page.next !== null) output.note(`more with: --after '${page.next}'`);
      if (!page.isComplete) output.note('not everything was looked at');
    },
  },
  stats: {
    args: '',
    description: 'counts, percentiles, trends, models and errors; what the log dropped or lost',
    flags: [
      ...CONDITIONS,
      ...STATE_FLAGS,
      { name: '--bucket', value: 'seconds', read: readSeconds, description: 'width of the trend; default one hour' },
    ],
    async run(client, context) {
      const { output, values } = context;
      const bucket = values['--bucket'] as number | undefined;
      const input = { ...readConditions(context), ...(bucket === undefined ? {} : { bucketMs: Math.round(bucket) }) };
      const stats = await client.call<Aggregate>('audit.stats', input);
      const health = await client.call<Health>('memory.health', {}).catch(ifForbidden);
      output.document({ ...stats, log: health?.audit ?? null });
      const times = (name: string, { totalMs, ttftMs }: Summary, which: 'totalMs' | 'ttftMs'): string[] => {
        const row = which === 'totalMs' ? totalMs : ttftMs;
        return [name, ...[row?.p50, row?.p95, row?.p99, row?.max].map((value) => roundTo(value ?? null, 0))];
      };
      output.lines(
        `${stats.count} requests, ${stats.numErrors} failed, mean quality ${roundTo(stats.meanQuality, 2)}${stats.numRated === undefined ? '' : ` of ${stats.numRated} rated`}`,
      );
      output.table(
        ['MILLISECONDS', 'p50', 'p95', 'p99', 'max'],
        [times('total', stats, 'totalMs'), times('first token', stats, 'ttftMs')],
      );
      const below = (head: readonly string[], rows: readonly (readonly string[])[]): void => {
        if (rows.length === 0) return;
        output.lines('');
        output.table(head, rows);
      };
      const models = stats.models.map(({ count, share, numErrors, model }) => [String(count), `${(share * 100).toFixed(0)} %`, String(numErrors), model]); // prettier-ignore
      below(['REQUESTS', 'SHARE', 'FAILED', 'MODEL'], models);
      const errors = stats.errors.map(({ code, count }) => [String(count), code]);
      below(['FAILED', 'CODE'], errors);
      const trend = stats.trend.slice(-24).map((part) => [dateOf(part.startMs), String(part.count), String(part.numErrors), roundTo(part.totalMs?.p95 ?? null, 0)]); // prettier-ignore
      below(['FROM (UTC)', 'REQUESTS', 'FAILED', 'p95 ms'], trend);
      if (health !== null) {
        const { numDropped, numRefused, gaps } = health.audit;
        output.lines(`\nthe log: ${numDropped} dropped, ${numRefused} refused, ${gaps.length} gaps`);
      }
      if (!stats.isComplete) output.note('the oldest requests were not counted');
    },
  },
  verify: {
    args: '',
    description: 'compute every hash of the log again; the exit code says whether it holds',
    flags: [],
    async run(client, { output }) {
      const report = await client.call<Report>('audit.verify', {});
      if (report.brokenAt !== null) {
        const { sequence, reason } = report.brokenAt;
        throw new RuvLLMError('io', `the audit log breaks at entry ${sequence}: ${reason}`, {
          data: { sequence, numChecked: report.numChecked },
        });
      }
      output.document(report);
      const { numChecked, numArchived, numDropped, gaps, head } = report;
      output.lines(`intact: ${numChecked} entries, ${numArchived} of them archived; ${numDropped} dropped, ${gaps.length} gaps`); // prettier-ignore
      output.lines(`head ${head.sequence} ${head.hash}`);
    },
  },
  export: {
    args: '',
    description: 'write the log as JSON lines in the order of its chain, the archive included',
    flags: [
      { name: '--output', value: 'file', description: 'write there instead of stdout' },
      { name: '--vectors', value: null, description: 'with the vectors' },
    ],
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
  'What the requests were, and what became of them. Who notes the head elsewhere can later prove that nothing was cut off.',
);
export const audit = actionRunner('audit', AUDIT_ACTIONS);
