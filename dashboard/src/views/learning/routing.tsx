import { useSignal } from '@preact/signals';
import { learningOf, type RouteDecision } from '../../api/learning.ts';
import { goTo } from '../../app/router.ts';
import { permissions, client, hasPart } from '../../app/session.ts';
import { Button } from '../../components/button.tsx';
import { EmptyState } from '../../components/empty-state.tsx';
import { Field } from '../../components/field.tsx';
import { JsonViewer } from '../../components/json-viewer.tsx';
import { Moment } from '../../components/moment.tsx';
import { ErrorNotice } from '../../components/notice.tsx';
import { useResource } from '../../components/use-resource.ts';
import { type Column, VirtualTable } from '../../components/virtual-table.tsx';
import { formatNumber, formatShare } from '../../format/numbers.ts';
import { formatDuration } from '../../format/time.ts';
import { visibleText } from '../../format/visible-text.ts';
import { messages } from '../../messages/index.ts';

const text = messages.learning.router;
const learning = learningOf(client);

const COLUMNS: readonly Column<RouteDecision>[] = [
  { title: text.columns.time, width: '150px', cell: ({ timestampMs }) => <Moment ms={timestampMs} /> },
  {
    title: text.columns.prompt,
    width: 'minmax(180px, 1fr)',
    cell: ({ query }) => <bdi>{visibleText(query.slice(0, 200))}</bdi>,
  },
  { title: text.columns.model, width: 'minmax(100px, 0.6fr)', cell: ({ model }) => visibleText(model) },
  {
    title: text.columns.context,
    width: '90px',
    isNumber: true,
    cell: ({ routing }) => formatNumber(routing.contextSize),
  },
  {
    title: text.columns.temperature,
    width: '110px',
    isNumber: true,
    cell: ({ routing }) => formatNumber(routing.temperature),
  },
  { title: text.columns.topP, width: '80px', isNumber: true, cell: ({ routing }) => formatNumber(routing.topP) },
  {
    title: text.columns.confidence,
    width: '105px',
    isNumber: true,
    cell: ({ routing }) => formatShare(routing.confidence),
  },
  { title: text.columns.duration, width: '90px', isNumber: true, cell: ({ latencyMs }) => formatDuration(latencyMs) },
  { title: text.columns.rating, width: '80px', isNumber: true, cell: ({ quality }) => formatNumber(quality ?? NaN) },
];

/** The router's decisions, and an explanation of the decision for any prompt. */
export function Routing() {
  const isEnabled = hasPart('routing');
  const decisions = useResource((signal) => (isEnabled ? learning.decisions(signal) : Promise.resolve([])));
  if (!isEnabled) {
    return (
      <EmptyState icon="branch" title={text.off}>
        <p>{text.offHint}</p>
      </EmptyState>
    );
  }
  const rows = decisions.data.value ?? [];
  return (
    <div class="stack">
      {permissions.value.write && <Explain />}
      {decisions.error.value !== null && <ErrorNotice error={decisions.error.value} onRetry={decisions.reload} />}
      {rows.length === 0 && decisions.data.value !== null && <p class="soft">{text.empty}</p>}
      {rows.length > 0 && (
        <VirtualTable
          label={text.decisions}
          rows={rows}
          columns={COLUMNS}
          keyOf={({ requestId }) => requestId}
          onOpen={({ requestId }) => goTo('audit', requestId)}
          minWidth={1025}
        />
      )}
    </div>
  );
}

function Explain() {
  const prompt = useSignal('');
  const decision = useSignal<Awaited<ReturnType<typeof learning.explain>> | null>(null);
  const error = useSignal<unknown>(null);
  async function explain(): Promise<void> {
    [decision.value, error.value] = [null, null];
    try {
      decision.value = await learning.explain(prompt.value);
    } catch (failure) {
      error.value = failure;
    }
  }
  return (
    <form
      class="card stack"
      onSubmit={(event) => {
        event.preventDefault();
        void explain();
      }}
    >
      <Field label={text.test}>
        {(id) => (
          <input
            id={id}
            class="input"
            value={prompt.value}
            maxLength={4096}
            onInput={(event) => (prompt.value = event.currentTarget.value)}
          />
        )}
      </Field>
      <div class="row">
        <Button type="submit" isDisabled={prompt.value.trim() === ''}>
          {text.explain}
        </Button>
      </div>
      {error.value !== null && <ErrorNotice error={error.value} />}
      {decision.value !== null && (
        <>
          <p>{text.choice(visibleText(decision.value.candidate), formatShare(decision.value.confidence))}</p>
          <details>
            <summary>{messages.learning.technical}</summary>
            <JsonViewer value={decision.value} openDepth={2} />
          </details>
        </>
      )}
    </form>
  );
}
