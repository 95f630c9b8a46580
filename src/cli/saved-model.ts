import type { ChatMessage } from '../chat/types.ts';
import type { SavedModel } from '../hub/saved-models.ts';
import type { GenerateOptions } from '../runtime/generate-options.ts';
import type { ModelConfig } from '../runtime/model-config.ts';
import { readOptions } from '../server/wire/ollama/options.ts';
import { openHub } from './open-hub.ts';

/** Defaults of a saved model for one command. */
export interface SavedDefaults {
  readonly params: Partial<GenerateOptions>;
  readonly config: ModelConfig;
  readonly system: string | null;
  readonly adapter: string | null;
  /** The first turns of a conversation. */
  readonly messages: readonly ChatMessage[];
}

const NONE: SavedDefaults = { params: {}, config: {}, system: null, adapter: null, messages: [] };

/** The defaults of the model that `ruvllm create` has saved under this name; none for other models. */
export async function readSavedDefaults(reference: string | undefined): Promise<SavedDefaults> {
  const saved = reference === undefined ? null : await openHub().saved.find(reference);
  return saved === null ? NONE : toDefaults(saved);
}

function toDefaults({ parameters, system, adapter, messages }: SavedModel): SavedDefaults {
  const context = parameters['num_ctx'];
  return {
    params: readOptions(parameters),
    config: typeof context === 'number' ? { maxContext: context } : {},
    system,
    adapter,
    messages: messages as readonly ChatMessage[],
  };
}
