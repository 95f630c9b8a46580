import type { AuditQuery } from '../../api/audit.ts';
import { sessionSignal } from '../../app/session-signal.ts';
import { Button } from '../../components/button.tsx';
import { Field } from '../../components/field.tsx';
import { messages } from '../../messages/index.ts';

const text = messages.audit.search;

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
      <Field label={text.similarTo}>{input('similarTo', 'search', text.similarToExample)}</Field>
      <Field label={text.text}>{input('text', 'search')}</Field>
      <details class="wide" open={MORE.some((name) => draft.value[name] !== '')}>
        <summary>{text.more}</summary>
        <div class="audit-filters">
          <Field label={text.model}>{input('model', 'text')}</Field>
          <Field label={text.from}>{input('from', 'datetime-local')}</Field>
          <Field label={text.to}>{input('to', 'datetime-local')}</Field>
          <Field label={text.minTotalMs}>{input('minTotalMs', 'number')}</Field>
          <Field label={text.outcome}>
            {(id) => (
              <select id={id} class="input" value={draft.value.outcome} onChange={set('outcome')}>
                <option value="">{text.outcomes.any}</option>
                <option value="succeeded">{text.outcomes.succeeded}</option>
                <option value="failed">{text.outcomes.failed}</option>
              </select>
            )}
          </Field>
          <Field label={text.session}>{input('session', 'text')}</Field>
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
          {text.clear}
        </Button>
        <Button kind="primary" icon="search" type="submit">
          {text.submit}
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
  const parseTime = (time: string): number | null => (time === '' ? null : new Date(time).getTime());
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
