import { useSignal } from '@preact/signals';
import type { SamplingOptions } from '../../api/types.ts';
import { hasPart } from '../../app/session.ts';
import { Button } from '../../components/button.tsx';
import { Dialog } from '../../components/dialog.tsx';
import { Field } from '../../components/field.tsx';
import { directionOf } from '../../format/direction.ts';
import { configure } from './store.ts';
import type { ChatSettings, Conversation } from './types.ts';

interface Option {
  readonly name: keyof SamplingOptions;
  readonly title: string;
  readonly min: number;
  readonly max: number;
  readonly step: number | 'any';
}

/** The sampling options, with the limits of the API. */
const OPTIONS: readonly Option[] = [
  { name: 'temperature', title: 'Temperature', min: 0, max: 2, step: 'any' },
  { name: 'top_p', title: 'Top-p', min: 0, max: 1, step: 'any' },
  { name: 'top_k', title: 'Top-k', min: 0, max: 2 ** 31 - 1, step: 1 },
  { name: 'min_p', title: 'Min-p', min: 0, max: 1, step: 'any' },
  { name: 'repetition_penalty', title: 'Repetition penalty', min: 0.01, max: 10, step: 'any' },
  { name: 'max_tokens', title: 'Max tokens', min: 1, max: 2 ** 31 - 1, step: 1 },
  { name: 'seed', title: 'Seed', min: 0, max: Number.MAX_SAFE_INTEGER, step: 1 },
];

/** The generation settings of one conversation. */
export function SettingsDialog({ conversation, onClose }: { conversation: Conversation; onClose: () => void }) {
  const draft = useSignal<ChatSettings>(conversation.settings);
  const { system, options, usesMemory } = draft.value;

  function set(name: Option['name'], value: number): void {
    const { [name]: _old, ...others } = draft.value.options;
    draft.value = { ...draft.value, options: Number.isNaN(value) ? others : { ...others, [name]: value } };
  }
  function submit(event: Event): void {
    event.preventDefault();
    configure(conversation.id, { settings: draft.value });
    onClose();
  }

  return (
    <Dialog title="Generation settings" onClose={onClose}>
      <form class="stack" onSubmit={submit}>
        <Field label="System prompt" hint="Sent before the conversation.">
          {(id) => (
            <textarea
              id={id}
              class="input"
              rows={4}
              dir={directionOf(system)}
              value={system}
              onInput={(event) => (draft.value = { ...draft.value, system: event.currentTarget.value })}
            />
          )}
        </Field>
        <div class="option-grid">
          {OPTIONS.map(({ name, title, min, max, step }) => (
            <Field key={name} label={title}>
              {(id) => (
                <input
                  id={id}
                  class="input"
                  type="number"
                  placeholder="default"
                  {...{ min, max, step }}
                  value={options[name] ?? ''}
                  onInput={(event) => set(name, event.currentTarget.valueAsNumber)}
                />
              )}
            </Field>
          ))}
        </div>
        {hasPart('memory') && (
          <label class="check">
            <input
              type="checkbox"
              checked={usesMemory}
              onChange={(event) => (draft.value = { ...draft.value, usesMemory: event.currentTarget.checked })}
            />
            <span>
              Use memory
              <br />
              <span class="small soft">Adds relevant records to the prompt and lists them as sources.</span>
            </span>
          </label>
        )}
        <div class="row end">
          <Button onClick={onClose}>Cancel</Button>
          <Button kind="primary" type="submit">
            Apply
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
