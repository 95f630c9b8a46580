import type { ChatMessage } from '../chat/types.ts';
import type { SavedModel } from '../hub/saved-models.ts';
import type { GenerateOptions } from '../runtime/generate-options.ts';
import type { ModelConfig } from '../runtime/model-config.ts';
import { readOptions } from '../server/wire/ollama/options.ts';
import type { ModelPresets } from './config/model-presets.ts';
import { openHub } from './open-hub.ts';

/** Defaults of a saved model for one command. */
export interface SavedDefaults {
  /** The model to load: that of a name in the settings file, else as named. */
  readonly reference: string | undefined;
  readonly params: Partial<GenerateOptions>;
  readonly config: ModelConfig;
  readonly system: string | null;
  readonly adapter: string | null;
  /** The first turns of a conversation. */
  readonly messages: readonly ChatMessage[];
}

const NONE = { params: {}, config: {}, system: null, adapter: null, messages: [] } as const;

/** The defaults of the model that the settings file or `ruvllm create` has under this name; none for other models. */
export async function readSavedDefaults(
  name: string | undefined,
  presets: ModelPresets | null,
): Promise<SavedDefaults> {
  const preset = presets?.models.find((one) => one.name === name || (name !== undefined && one.aliases.includes(name)));
  const reference = preset?.model ?? name;
  const saved = reference === undefined ? null : await openHub().saved.find(reference);
  const defaults = saved === null ? NONE : toDefaults(saved);
  if (preset === undefined) return { ...defaults, reference };
  const context = preset.maxContext === null ? {} : { maxContext: preset.maxContext };
  return {
    ...defaults,
    reference,
    params: { ...defaults.params, ...preset.sampling },
    config: { ...defaults.config, ...context },
  };
}

function toDefaults({ parameters, system, adapter, messages }: SavedModel): Omit<SavedDefaults, 'reference'> {
  const context = parameters['num_ctx'];
  return {
    params: readOptions(parameters),
    config: typeof context === 'number' ? { maxContext: context } : {},
    system,
    adapter,
    messages: messages as readonly ChatMessage[],
  };
}
