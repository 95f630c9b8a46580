import type { GenerationRequest } from '../runtime/requests/generation-request.ts';
import type { ChatMessage } from '../runtime/lower-layers.ts';
import { isChat, type Prompt } from '../runtime/prompt.ts';
import type { SavedModel } from './model-library.ts';
import { readOptions } from './wire/ollama/options.ts';

/** The request with the defaults of a saved model, where it sets nothing itself. */
export function withSavedDefaults(request: GenerationRequest, saved: SavedModel): GenerationRequest {
  const defaults = readOptions(saved.parameters);
  // A default that is longer than the context is no mistake of the request.
  const limit =
    defaults.maxTokens === undefined || request.options.maxTokens !== undefined ? {} : { clampMaxTokens: true };
  return {
    ...request,
    prompts: request.prompts.map((prompt) => withTurns(prompt, saved)),
    options: { ...defaults, ...limit, ...request.options },
    ...(saved.adapter === null ? {} : { adapterPath: saved.adapter }),
  };
}

/** The first turns of the model come after the system message, of which the request's own replaces the model's. */
function withTurns(prompt: Prompt, { system, messages }: SavedModel): Prompt {
  if (!isChat(prompt)) return prompt;
  const turns = prompt as readonly ChatMessage[];
  const numSystem = turns.findIndex(({ role }) => role !== 'system');
  const at = numSystem < 0 ? turns.length : numSystem;
  const all = [...turns.slice(0, at), ...(messages as readonly ChatMessage[]), ...turns.slice(at)];
  const hasSystem = system === null || all.some(({ role }) => role === 'system');
  return hasSystem ? all : [{ role: 'system', content: system }, ...all];
}
