import { useSignal } from '@preact/signals';
import type { Props, SamplingOptions } from '../../api/types.ts';
import { api, hasPart } from '../../app/session.ts';
import { Button } from '../../components/button.tsx';
import { Dialog } from '../../components/dialog.tsx';
import { Field } from '../../components/field.tsx';
import { ErrorNotice } from '../../components/notice.tsx';
import { useResource } from '../../components/use-resource.ts';
import { directionOf } from '../../format/direction.ts';
import { formatNumber } from '../../format/numbers.ts';
import { messages } from '../../messages/index.ts';
import { modelOf } from './models.ts';
import { PresetFields } from './preset-fields.tsx';
import { configure } from './store.ts';
import { parseTools } from './tools.ts';
import type { ChatSettings, Conversation } from './types.ts';

const text = messages.chat.options;

interface Option {
  readonly name: keyof SamplingOptions;
  readonly min: number;
  readonly max: number;
  readonly step: number | 'any';
}

/** The sampling options, with the limits of the API. */
const OPTIONS: readonly Option[] = [
  { name: 'temperature', min: 0, max: 2, step: 'any' },
  { name: 'top_p', min: 0, max: 1, step: 'any' },
  { name: 'top_k', min: 0, max: 2 ** 31 - 1, step: 1 },
  { name: 'min_p', min: 0, max: 1, step: 'any' },
  { name: 'repetition_penalty', min: 0.01, max: 10, step: 'any' },
  { name: 'max_tokens', min: 1, max: 2 ** 31 - 1, step: 1 },
  { name: 'seed', min: 0, max: Number.MAX_SAFE_INTEGER, step: 1 },
];

const TOOLS_EXAMPLE = '[{"type": "function", "function": {"name": "weather", "parameters": {}}}]';

/** The generation settings of one conversation. */
export function SettingsDialog({ conversation, onClose }: { conversation: Conversation; onClose: () => void }) {
  const draft = useSignal<ChatSettings>(conversation.settings);
  const failure = useSignal<unknown>(null);
  const { system, options, usesMemory, tools } = draft.value;
  const props = useResource((signal) => api.props(signal));
  const defaults = defaultsOf(props.data.value, modelOf(conversation.model));

  function set(name: Option['name'], value: number): void {
    const { [name]: _old, ...others } = draft.value.options;
    draft.value = { ...draft.value, options: Number.isNaN(value) ? others : { ...others, [name]: value } };
  }
  function submit(event: Event): void {
    event.preventDefault();
    try {
      parseTools(tools);
      configure(conversation.id, { settings: draft.value });
      onClose();
    } catch (error) {
      failure.value = error;
    }
  }

  return (
    <Dialog title={messages.chat.settings} onClose={onClose}>
      <form class="stack" onSubmit={submit}>
        <PresetFields settings={draft.value} onChange={(next) => (draft.value = next)} />
        <Field label={text.system} hint={text.systemHint}>
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
          {OPTIONS.map(({ name, min, max, step }) => (
            <Field key={name} label={text[name]}>
              {(id) => (
                <input
                  id={id}
                  class="input"
                  type="number"
                  placeholder={defaults[name] ?? text.default}
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
              {text.useMemory}
              <br />
              <span class="small soft">{text.useMemoryHint}</span>
            </span>
          </label>
        )}
        <Field label={text.tools} hint={text.toolsHint}>
          {(id) => (
            <textarea
              id={id}
              class="input mono"
              rows={4}
              spellcheck={false}
              placeholder={TOOLS_EXAMPLE}
              value={tools}
              onInput={(event) => (draft.value = { ...draft.value, tools: event.currentTarget.value })}
            />
          )}
        </Field>
        {failure.value !== null && <ErrorNotice error={failure.value} />}
        <div class="row end">
          <Button onClick={onClose}>{messages.chat.cancel}</Button>
          <Button kind="primary" type="submit">
            {text.apply}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}

/** The values that count for options without one, as the model reports them. */
function defaultsOf(props: Props | null, id: string): Partial<Record<Option['name'], string>> {
  const model = props?.models.find((entry) => entry.id === id);
  const known = { ...(model?.info?.['sampling'] as object | undefined), ...model?.sampling } as Record<string, unknown>;
  const names = { temperature: 'temperature', top_p: 'topP', top_k: 'topK', min_p: 'minP', repetition_penalty: 'repetitionPenalty' } as const; // prettier-ignore
  const values = Object.entries(names).flatMap(([option, name]) =>
    typeof known[name] === 'number' ? [[option, text.defaultValue(formatNumber(known[name]))]] : [],
  );
  return { ...Object.fromEntries(values), max_tokens: text.noLimit, seed: text.random };
}
