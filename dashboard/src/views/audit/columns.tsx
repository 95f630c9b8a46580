import type { AuditRow } from '../../api/audit.ts';
import { Badge } from '../../components/badge.tsx';
import { Moment } from '../../components/moment.tsx';
import type { Column } from '../../components/virtual-table.tsx';
import { formatCount, formatNumber } from '../../format/numbers.ts';
import { formatDuration } from '../../format/time.ts';
import { visibleText } from '../../format/visible-text.ts';

/** Longer texts are truncated in table cells. */
const MAX_CHARS = 200;

export const oneLine = (text: string): string => visibleText(text.slice(0, MAX_CHARS).replaceAll(/\s+/g, ' '));

export const COLUMNS: readonly Column<AuditRow>[] = [
  { title: 'Time', width: '150px', cell: ({ createdMs }) => <Moment ms={createdMs} /> },
  { title: 'Prompt', width: 'minmax(200px, 2fr)', cell: ({ entry }) => <bdi>{oneLine(entry.query)}</bdi> },
  { title: 'Answer', width: 'minmax(160px, 1.4fr)', cell: (row) => <Outcome row={row} /> },
  { title: 'Model', width: 'minmax(90px, 0.8fr)', cell: ({ entry }) => visibleText(entry.model) },
  { title: 'Tokens', width: '80px', isNumber: true, cell: ({ entry }) => formatCount(entry.numOutputTokens) },
  { title: 'Duration', width: '90px', isNumber: true, cell: ({ entry }) => formatDuration(entry.latency.totalMs) },
];

export const SIMILARITY: Column<AuditRow> = {
  title: 'Similarity',
  width: '95px',
  isNumber: true,
  cell: ({ similarity }) => formatNumber(similarity ?? NaN),
};

function Outcome({ row: { entry } }: { row: AuditRow }) {
  if (entry.error !== null) return <Badge tone="bad">{visibleText(entry.error.code)}</Badge>;
  return <bdi class="soft">{oneLine(entry.response)}</bdi>;
}
