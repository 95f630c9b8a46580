import type { AuditQuery } from '../../api/audit.ts';
import { keptSignal } from '../../app/kept-signal.ts';
import { Button } from '../../components/button.tsx';
import { Field } from '../../components/field.tsx';

type Draft = Readonly<Record<'meaning' | 'words' | 'model' | 'from' | 'to' | 'slower' | 'outcome' | 'session', string>>;

const EMPTY: Draft = { meaning: '', words: '', model: '', from: '', to: '', slower: '', outcome: '', session: '' };

/** Who opens a request and comes back finds what was asked for. */
const draft = keptSignal<Draft>(EMPTY);

/** What is looked for; nothing is asked before it is sent. */
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
      <div class="wide">
        <Field label="By meaning">{input('meaning', 'search', 'a question like this one')}</Field>
      </div>
      <Field label="With these words">{input('words', 'search')}</Field>
      <Field label="Model">{input('model', 'text')}</Field>
      <Field label="From">{input('from', 'datetime-local')}</Field>
      <Field label="To">{input('to', 'datetime-local')}</Field>
      <Field label="Slower than (ms)">{input('slower', 'number')}</Field>
      <Field label="Outcome">
        {(id) => (
          <select id={id} class="input" value={draft.value.outcome} onChange={set('outcome')}>
            <option value="">any</option>
            <option value="answered">answered</option>
            <option value="failed">failed</option>
          </select>
        )}
      </Field>
      <Field label="Session">{input('session', 'text')}</Field>
      <div class="row end">
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

/** What each outcome asks for. */
const OUTCOMES: Readonly<Record<string, AuditQuery>> = {
  answered: { hasError: false },
  failed: { hasError: true },
};

/** Only what was filled in. */
export function toQuery(draft: Draft): AuditQuery {
  const time = (text: string): number | null => (text === '' ? null : new Date(text).getTime());
  const asked = {
    similarTo: draft.meaning.trim(),
    text: draft.words.trim(),
    model: draft.model.trim(),
    sessionId: draft.session.trim(),
    fromMs: time(draft.from),
    toMs: time(draft.to),
    minTotalMs: draft.slower === '' ? null : Number(draft.slower),
  };
  const filled = Object.entries(asked).filter(([, value]) => value !== '' && value !== null);
  return { ...Object.fromEntries(filled), ...OUTCOMES[draft.outcome] };
}
