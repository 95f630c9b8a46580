import type { AuditRow } from '../../api/audit.ts';
import { Badge, type Tone } from '../../components/badge.tsx';
import { Moment } from '../../components/moment.tsx';
import type { Column } from '../../components/virtual-table.tsx';
import { formatCount, formatNumber } from '../../format/numbers.ts';
import { formatDuration } from '../../format/time.ts';
import { visibleText } from '../../format/visible-text.ts';
import { messages } from '../../messages/index.ts';

const text = messages.audit;
/** Longer texts are truncated in table cells. */
const MAX_CHARS = 200;

export const oneLine = (long: string): string => visibleText(long.slice(0, MAX_CHARS).replaceAll(/\s+/g, ' '));

export const COLUMNS: readonly Column<AuditRow>[] = [
  { title: text.columns.time, width: '115px', cell: ({ createdMs }) => <Moment ms={createdMs} /> },
  { title: text.columns.prompt, width: 'minmax(160px, 2fr)', cell: ({ entry }) => <bdi>{oneLine(entry.query)}</bdi> },
  { title: text.columns.answer, width: 'minmax(130px, 1.4fr)', cell: (row) => <Outcome row={row} /> },
  {
    title: text.columns.model,
    width: 'minmax(120px, 1fr)',
    cell: ({ entry }) => <span title={visibleText(entry.model)}>{visibleText(entry.model)}</span>,
  },
  { title: text.columns.rating, width: '105px', cell: ({ rating }) => <Rating rating={rating} /> },
  {
    title: text.columns.quality,
    width: '90px',
    isNumber: true,
    cell: ({ rating, entry }) => formatNumber(rating?.quality ?? entry.quality ?? NaN),
  },
  {
    title: text.columns.tokens,
    width: '80px',
    isNumber: true,
    cell: ({ entry }) => formatCount(entry.numOutputTokens),
  },
  {
    title: text.columns.duration,
    width: '90px',
    isNumber: true,
    cell: ({ entry }) => formatDuration(entry.latency.totalMs),
  },
];

export const SIMILARITY: Column<AuditRow> = {
  title: text.columns.similarity,
  width: '95px',
  isNumber: true,
  cell: ({ similarity }) => formatNumber(similarity ?? NaN),
};

const TONES: Readonly<Record<string, Tone>> = { success: 'good', failure: 'bad' };

function Rating({ rating }: Pick<AuditRow, 'rating'>) {
  if (rating === null || rating.verdict === 'unknown') return <span class="soft">–</span>;
  return <Badge tone={TONES[rating.verdict] ?? 'none'}>{verdictOf(rating.verdict)}</Badge>;
}

/** The rating of an answer in words. */
export function verdictOf(verdict: string | null): string {
  const verdicts: Readonly<Record<string, string>> = text.verdicts;
  return (verdict === null ? undefined : verdicts[verdict]) ?? text.none;
}

/** The cause of an error in words; rare ones by their code. */
export function errorOf(code: string): string {
  const errors: Readonly<Record<string, string>> = text.errors;
  return Object.hasOwn(errors, code) ? errors[code]! : visibleText(code);
}

function Outcome({ row: { entry } }: { row: AuditRow }) {
  if (entry.error !== null) return <Badge tone="bad">{errorOf(entry.error.code)}</Badge>;
  return <bdi class="soft">{oneLine(entry.response)}</bdi>;
}
