import type { AuditQuery } from '../../api/audit.ts';
import { sessionSignal } from '../../app/session-signal.ts';
import { Button } from '../../components/button.tsx';
import { Field } from '../../components/field.tsx';

type Draft = Readonly<
  Record<'similarTo' | 'text' | 'model' | 'from' | 'to' | 'minTotalMs' | 'outcome' | 'session', string>
>;

const EMPTY: Draft = { similarTo: '', text: '', model: '', from: '', to: '', minTotalMs: '', outcome: '', session: '' };

/** Filters that few searches need. */
const MORE = ['model', 'from', 'to', 'minTotalMs', 'outcome', 'session'] as const;

/** Keeps the filters while a request is open. */
const draft = sessionSignal<Draft>(EMPTY);

/** The search filters; they apply on submit. */
export function SearchForm({ onSearch }: { onSearch: (query: AuditQuery) => void }) {
  const set = (name: keyof Draft) => (event: Event) =>
    (draft.value = { ...draft.value, [name]: (event.currentTarget as HTMLInputElement).value });
  const input =
    (name: keyof Draft, type: string, placeholder = '') =>
    (id: string) => (
      <input
        id={id}
        class="input"
        type={type}
        value={draft.value[name]}
        placeholder={placeholder}
        maxLength={1024}
        onInput={set(name)}
      />
    );
  return (
    <form
      class="card audit-form"
      role="search"
      onSubmit={(event) => {
        event.preventDefault();
        onSearch(toQuery(draft.value));
      }}
    >
      <Field label="Similar to">{input('similarTo', 'search', 'Text of a similar request')}</Field>
      <Field label="Contains text">{input('text', 'search')}</Field>
      <details class="wide" open={MORE.some((name) => draft.value[name] !== '')}>
        <summary>More filters</summary>
        <div class="audit-filters">
          <Field label="Model">{input('model', 'text')}</Field>
          <Field label="From">{input('from', 'datetime-local')}</Field>
          <Field label="To">{input('to', 'datetime-local')}</Field>
          <Field label="Slower than (ms)">{input('minTotalMs', 'number')}</Field>
          <Field label="Outcome">
            {(id) => (
              <select id={id} class="input" value={draft.value.outcome} onChange={set('outcome')}>
                <option value="">any</option>
                <option value="succeeded">succeeded</option>
                <option value="failed">failed</option>
              </select>
            )}
          </Field>
          <Field label="Session">{input('session', 'text')}</Field>
        </div>
      </details>
      <div class="row end wide">
        <Button
          kind="plain"
          onClick={() => {
            draft.value = EMPTY;
            onSearch({});
          }}
        >
          Clear
        </Button>
        <Button kind="primary" icon="search" type="submit">
          Search
        </Button>
      </div>
    </form>
  );
}

/** The query of each outcome. */
const OUTCOMES: Readonly<Record<string, AuditQuery>> = {
  succeeded: { hasError: false },
  failed: { hasError: true },
};

/** Converts the filled-in fields to a query. */
export function toQuery(draft: Draft): AuditQuery {
  const parseTime = (text: string): number | null => (text === '' ? null : new Date(text).getTime());
  const filters = {
    similarTo: draft.similarTo.trim(),
    text: draft.text.trim(),
    model: draft.model.trim(),
    sessionId: draft.session.trim(),
    fromMs: parseTime(draft.from),
    toMs: parseTime(draft.to),
    minTotalMs: draft.minTotalMs === '' ? null : Number(draft.minTotalMs),
  };
  const nonEmpty = Object.entries(filters).filter(([, value]) => value !== '' && value !== null);
  return { ...Object.fromEntries(nonEmpty), ...OUTCOMES[draft.outcome] };
}
