import { signal } from '@preact/signals';
import type { SamplingOptions } from '../../api/types.ts';
import { identity, onSignOut } from '../../app/session.ts';
import { messages } from '../../messages/index.ts';
import { readOptions } from './read-conversation.ts';
import type { ChatSettings } from './types.ts';

const text = messages.chat.presets;
const MAX_PRESETS = 50;
const MAX_NAME_CHARS = 60;

/** Sampling options under a name, with a system prompt if the user saved it. */
export interface Preset {
  readonly name: string;
  /** Null: the system prompt stays as it is. */
  readonly system: string | null;
  readonly options: SamplingOptions;
}

/** The presets of the page; the server's defaults count for options without a value. */
export const BUILT_IN: readonly Preset[] = [
  { name: text.default, system: null, options: {} },
  { name: text.precise, system: null, options: { temperature: 0 } },
  { name: text.creative, system: null, options: { temperature: 1.2, min_p: 0.1 } },
];

/** The user's presets in this browser. */
export const savedPresets = signal<readonly Preset[]>([]);
onSignOut(() => void (savedPresets.value = []));

const storageKey = (): string => `ruvllm.presets.${identity.value?.tenant ?? ''}`;

/** Reads the user's presets; damaged ones are left out. */
export function openPresets(): void {
  try {
    const list = JSON.parse(localStorage.getItem(storageKey()) ?? '[]') as unknown;
    savedPresets.value = (Array.isArray(list) ? list : []).slice(0, MAX_PRESETS).flatMap((value: Partial<Preset> | null) => {
      if (typeof value?.name !== 'string' || value.name.trim() === '') return [];
      const system = typeof value.system === 'string' ? value.system : null;
      return [{ name: value.name.slice(0, MAX_NAME_CHARS), system, options: readOptions(value.options) }];
    }); // prettier-ignore
  } catch {
    savedPresets.value = [];
  }
}

/** Keeps the settings under a name; an own preset with the same name is replaced. */
export function savePreset(name: string, { system, options }: ChatSettings): void {
  const others = savedPresets.value.filter((preset) => preset.name !== name);
  write([...others, { name: name.slice(0, MAX_NAME_CHARS), system, options }].slice(-MAX_PRESETS));
}

export function removePreset(name: string): void {
  write(savedPresets.value.filter((preset) => preset.name !== name));
}

function write(presets: readonly Preset[]): void {
  savedPresets.value = presets;
  try {
    localStorage.setItem(storageKey(), JSON.stringify(presets));
  } catch {
    // A full storage keeps them until the page is closed.
  }
}

export const applyPreset = (settings: ChatSettings, { system, options }: Preset): ChatSettings => ({
  ...settings,
  options,
  system: system ?? settings.system,
});

/** The preset that the settings equal; null: none. */
export function presetOf(settings: ChatSettings): Preset | null {
  const isEqual = ({ system, options }: Preset): boolean => {
    const names = new Set([...Object.keys(options), ...Object.keys(settings.options)]) as Set<keyof SamplingOptions>;
    return (
      (system === null || system === settings.system) &&
      [...names].every((name) => options[name] === settings.options[name])
    );
  };
  return [...savedPresets.value, ...BUILT_IN].find(isEqual) ?? null;
}
