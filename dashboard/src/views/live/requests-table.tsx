import type { LiveRequest } from '../../api/live.ts';
import { Badge, type Tone } from '../../components/badge.tsx';
import { type Column, VirtualTable } from '../../components/virtual-table.tsx';
import { formatCount, formatNumber } from '../../format/numbers.ts';
import { formatDuration } from '../../format/time.ts';
import { visibleText } from '../../format/visible-text.ts';
import { messages } from '../../messages/index.ts';

const text = messages.live;
const STATES: Readonly<Record<LiveRequest['state'], readonly [tone: Tone, label: string]>> = {
  loading: ['warn', text.states.loading],
  prompt: ['none', text.states.prompt],
  generating: ['accent', text.states.generating],
};

const COLUMNS: readonly Column<LiveRequest>[] = [
  {
    title: text.columns.request,
    width: 'minmax(120px, 1fr)',
    cell: ({ id }) => <span class="mono">{visibleText(id)}</span>,
  },
  { title: text.columns.tenant, width: 'minmax(80px, 0.6fr)', cell: ({ tenant }) => visibleText(tenant) },
  {
    title: text.columns.model,
    width: 'minmax(110px, 1fr)',
    cell: ({ model, asked_model }) => visibleText(model ?? asked_model),
  },
  { title: text.columns.node, width: 'minmax(90px, 0.6fr)', cell: ({ node }) => visibleText(node) },
  { title: text.columns.state, width: '140px', cell: ({ state }) => <State state={state} /> },
  { title: text.columns.prompt, width: '90px', isNumber: true, cell: ({ prompt_tokens }) => countOf(prompt_tokens) },
  { title: text.columns.cached, width: '90px', isNumber: true, cell: ({ cached_tokens }) => countOf(cached_tokens) },
  { title: text.columns.generated, width: '105px', isNumber: true, cell: ({ tokens }) => formatCount(tokens) },
  { title: text.columns.rate, width: '90px', isNumber: true, cell: (request) => formatNumber(rateOf(request) ?? NaN) },
  { title: text.columns.elapsed, width: '95px', isNumber: true, cell: ({ elapsed_ms }) => formatDuration(elapsed_ms) },
];
const ROW_HEIGHT = 38;
const MAX_HEIGHT = 420;

function State({ state }: { state: LiveRequest['state'] }) {
  const [tone, label] = STATES[state] ?? ['none', visibleText(state)];
  return <Badge tone={tone}>{label}</Badge>;
}

const countOf = (value: number | null): string => (value === null ? '–' : formatCount(value));

/** Tokens/s since the first token; null: fewer than two tokens. */
export function rateOf({ tokens, elapsed_ms, first_token_ms }: LiveRequest): number | null {
  if (first_token_ms === null || tokens < 2 || elapsed_ms <= first_token_ms) return null;
  return ((tokens - 1) * 1000) / (elapsed_ms - first_token_ms);
}

export function RequestsTable({ requests }: { requests: readonly LiveRequest[] }) {
  return (
    <VirtualTable
      label={text.requestsTable}
      rows={requests}
      columns={COLUMNS}
      keyOf={({ id }) => id}
      height={MAX_HEIGHT}
      minWidth={1010}
      rowHeight={ROW_HEIGHT}
    />
  );
}
