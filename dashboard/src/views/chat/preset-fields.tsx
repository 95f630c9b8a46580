import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { Button } from '../../components/button.tsx';
import { Field } from '../../components/field.tsx';
import { visibleText } from '../../format/visible-text.ts';
import { messages } from '../../messages/index.ts';
import { applyPreset, BUILT_IN, openPresets, presetOf, removePreset, savedPresets, savePreset } from './presets.ts';
import type { ChatSettings } from './types.ts';

const text = messages.chat.presets;

/** Chooses, saves and deletes presets of the settings. */
export function PresetFields({ settings, onChange }: { settings: ChatSettings; onChange: (next: ChatSettings) => void }) {
  const name = useSignal('');
  useEffect(openPresets, []);
  const all = [...BUILT_IN, ...savedPresets.value];
  const chosen = presetOf(settings);
  const isSaved = chosen !== null && savedPresets.value.includes(chosen);
  function save(): void {
    savePreset(name.value.trim(), settings);
    name.value = '';
  }
  return (
    <div class="preset-fields">
      <Field label={text.label}>
        {(id) => (
          <select
            id={id}
            class="input"
            value={chosen === null ? -1 : all.indexOf(chosen)}
            onChange={({ currentTarget }) => {
              const preset = all[Number(currentTarget.value)];
              if (preset !== undefined) onChange(applyPreset(settings, preset));
            }}
          >
            {chosen === null && <option value={-1}>{text.custom}</option>}
            {all.map((preset, index) => (
              <option key={index} value={index}>
                {visibleText(preset.name)}
              </option>
            ))}
          </select>
        )}
      </Field>
      {isSaved ? (
        <Button icon="trash" kind="danger" onClick={() => removePreset(chosen.name)}>
          {text.remove}
        </Button>
      ) : (
        <>
          <Field label={text.saveAs}>
            {(id) => (
              <input
                id={id}
                class="input"
                maxLength={60}
                placeholder={text.namePlaceholder}
                value={name}
                onInput={(event) => (name.value = event.currentTarget.value)}
              />
            )}
          </Field>
          <Button isDisabled={name.value.trim() === ''} onClick={save}>
            {text.save}
          </Button>
        </>
      )}
    </div>
  );
} // prettier-ignore
