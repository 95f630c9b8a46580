import { RuvLLMError } from '../../core/errors.ts';
import type { AuditAggregate } from '../../memory/audit/aggregate.ts';
import type { AuditPage } from '../../memory/audit/search.ts';
import type { AuditReport } from '../../memory/audit/verify.ts';
import type { AuditEntry, QualityEstimate } from '../../memory/schemas/audit.ts';
import { actionCommand } from '../actions.ts';
import type { CommandContext } from '../command.ts';
import { defineFlags } from '../flags.ts';
import {
  AFTER_ROW,
  memoryAction,
  memoryClientAction,
  noteNextPage,
  OUTPUT_ROW,
  SIMILARITY_ROW,
} from '../memory/action.ts';
import { CLIENT_FLAGS } from '../memory/client.ts';
import { ifForbidden } from '../servers/ask-server.ts';
import { TIME_ROWS } from '../memory/readers.ts';
import { columnsOf, dateOf, oneLine, roundTo } from '../memory/show.ts';
import { exportInput, exportLines } from '../memory/transfer.ts';
import { conflictError } from '../usage-error.ts';
import { readSeconds, type ValueReader } from '../values.ts';

const FILTERS = {
  ...TIME_ROWS,
  '--min-quality minQuality': 'minimum rating, 0 to 1',
  '--max-quality maxQuality': 'maximum rating',
  '--min-estimate minEstimate': 'minimum estimated quality, 0 to 1',
  '--max-estimate maxEstimate': 'maximum estimated quality',
  '--min-ms minTotalMs': 'minimum latency in milliseconds',
  '--max-ms maxTotalMs': 'maximum latency in milliseconds',
  '--of-model <name> model': 'answered by this model',
  '--session <id> sessionId': 'in this session',
  '--request <id> requestId': 'with this request id',
  '--error <code> errorCode': 'failed with this error code',
  '--failed': 'only failed requests',
  '--succeeded': 'only successful requests',
};

function readState({ values }: CommandContext): { readonly hasError?: boolean } {
  const [hasFailed, hasSucceeded] = [values['--failed'] === true, values['--succeeded'] === true];
  if (hasFailed && hasSucceeded) throw conflictError('--failed', '--succeeded');
  return hasFailed || hasSucceeded ? { hasError: hasFailed } : {};
}

/** The optional figures are absent from older servers. */
type Aggregate = Omit<AuditAggregate, 'numRated' | 'numEstimated' | 'meanEstimate'> & {
  readonly numRated?: number;
  readonly numEstimated?: number;
  readonly meanEstimate?: number | null;
  readonly log: Health['audit'] | null;
};
interface Health {
  readonly audit: { readonly numDropped: number; readonly numRefused: number; readonly gaps: readonly object[] };
}

const readBucket: ValueReader<number> = (text, name) => Math.round(readSeconds(text, name));

/** The parts of a latency in order. */
export function partsOf(latency: Readonly<Record<string, number | null>>): string {
  return Object.entries(latency)
    .filter(([name, ms]) => name !== 'totalMs' && ms !== null && ms > 0)
    .map(([name, ms]) => `${name.replace(/Ms$/, '')} ${roundTo(ms!, 3)} ms`)
    .join(' · ');
}

/** The estimated quality and its parts. */
function estimateOf({ quality, parts }: QualityEstimate): string {
  const shown = Object.entries(parts).map(([name, value]) => `${name} ${roundTo(value ?? null, 2)}`);
  return [`estimated quality ${roundTo(quality, 2)}`, ...shown].join(' · ');
}

/** The attempts of a request with reflection, one per line. */
function attemptsOf({ ending, chosen, attempts }: NonNullable<AuditEntry['reflection']>, width: number): string {
  const lines = attempts.map(({ error, completionTokens }, i) =>
    oneLine(
      `attempt ${i + 1}${i === chosen ? ' (answer)' : ''}, ${completionTokens} tokens: ${error ?? 'passed'}`,
      width,
    ),
  );
  return [`reflection: ${ending}`, ...lines].map((line) => `  ${line}`).join('\n');
}

const AUDIT_ACTIONS = {
  search: memoryAction<AuditPage>('audit.search', {
    args: '[words]',
    keys: ['text'],
    description: 'search requests by words, by similarity (--similar) and by any combination of filters',
    flags: {
      '--similar <text> similarTo': 'similar to this text; nearest first',
      ...SIMILARITY_ROW,
      ...FILTERS,
      '--order order': 'sort order',
      '--limit limit': 'maximum number of results',
      ...AFTER_ROW,
    },
    input: (_, context) => readState(context),
    needsModel: ({ values }) => values['--similar'] !== undefined,
    show({ entries, next, isComplete }, { io, output, values }) {
      const width = columnsOf(io) - 4;
      for (const { createdMs, similarity, entry, rating } of entries) {
        const state = entry.error === null ? 'ok' : oneLine(entry.error.code, 30);
        const quality = rating?.quality ?? entry.quality;
        const { estimate = null } = entry;
        // A rating replaces the estimate: one of them is shown.
        const ratingText =
          quality !== null
            ? `  quality ${roundTo(quality, 2)}`
            : estimate === null
              ? ''
              : `  estimate ${roundTo(estimate.quality, 2)}`;
        const similarityText = similarity === null ? '' : `  ${similarity.toFixed(3)}`;
        output.lines(
          `${dateOf(createdMs)}  ${entry.requestId}  ${oneLine(entry.model, 30)}  ${roundTo(entry.latency.totalMs, 0)} ms  ${state}${ratingText}${similarityText}`,
        );
        if (values['--request'] !== undefined) {
          output.lines(`  ${partsOf(entry.latency)}`);
          if (estimate !== null) output.lines(`  ${estimateOf(estimate)}`);
          if (entry.reflection !== undefined) output.lines(attemptsOf(entry.reflection, width));
        }
        const answer = entry.error?.message ?? entry.response;
        output.lines(`  > ${oneLine(entry.query, width)}\n  < ${oneLine(answer, width)}`);
      }
      if (entries.length === 0) output.note('no requests match these filters');
      noteNextPage(output, next);
      if (!isComplete) output.note('incomplete: not all requests were searched');
    },
  }),
  stats: memoryAction<Aggregate>('audit.stats', {
    description: 'show counts, percentiles, trends, models, errors and lost entries',
    flags: { ...FILTERS, '--bucket <seconds> bucketMs': ['trend interval; default one hour', readBucket] },
    input: (_, context) => readState(context),
    extend: async (client) => ({ log: (await client.call<Health>('memory.health', {}).catch(ifForbidden))?.audit ?? null }), // prettier-ignore
    show(stats, { output }) {
      const times = (name: string, row: AuditAggregate['totalMs']): string[] => [
        name,
        ...[row?.p50, row?.p95, row?.p99, row?.max].map((value) => roundTo(value ?? null, 0)),
      ];
      output.lines(
        `${stats.count} requests, ${stats.numErrors} failed, mean quality ${roundTo(stats.meanQuality, 2)}${stats.numRated === undefined ? '' : ` (${stats.numRated} rated)`}`,
      );
      const { numEstimated = 0, meanEstimate = null } = stats;
      if (numEstimated > 0) output.lines(`estimated without a person: mean ${roundTo(meanEstimate, 2)} (${numEstimated} requests)`); // prettier-ignore
      output.table(
        ['MILLISECONDS', 'p50', 'p95', 'p99', 'max'],
        [times('total', stats.totalMs), times('time to first token', stats.ttftMs)],
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
      if (stats.log !== null) {
        const { numDropped, numRefused, gaps } = stats.log;
        output.lines(`\naudit log: ${numDropped} dropped, ${numRefused} refused, ${gaps.length} gaps`);
      }
      if (!stats.isComplete) output.note('incomplete: the oldest requests were not counted');
    },
  }),
  verify: memoryAction<AuditReport>('audit.verify', {
    description: 'recompute every hash of the log; exits with 1 if it was altered',
    show({ brokenAt, numChecked, numArchived, numDropped, gaps, head }, { output }) {
      if (brokenAt !== null) {
        throw new RuvLLMError('io', `the audit log is broken at entry ${brokenAt.sequence}: ${brokenAt.reason}`, {
          data: { sequence: brokenAt.sequence, numChecked },
        });
      }
      output.lines(`intact: ${numChecked} entries (${numArchived} archived), ${numDropped} dropped, ${gaps.length} gaps`); // prettier-ignore
      output.lines(`head ${head.sequence} ${head.hash}`);
    },
  }),
  export: memoryClientAction({
    description: 'write the log as JSON lines in chain order, including archived entries',
    flags: defineFlags({ ...OUTPUT_ROW, '--vectors': 'include embeddings' }),
    run: (client, context) => exportLines(client, context, 'audit.export', 'entries', exportInput(context)),
  }),
};

export const { flags, help, run } = actionCommand('audit', AUDIT_ACTIONS, {
  common: CLIENT_FLAGS,
  notes:
    'The audit log records every request and its outcome. To detect truncation later, keep a copy of the head elsewhere.',
});
