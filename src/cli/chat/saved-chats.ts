import type { ChatMessage } from '../../chat/types.ts';
import { RuvLLMError } from '../../core/errors.ts';
import type { SavedModels } from '../../hub/saved-models.ts';
import type { GenerateOptions } from '../../runtime/generate-options.ts';
import { readOptions } from '../../server/wire/ollama/options.ts';
import type { SavedChats } from './slash-commands.ts';

/** Names of the library's options in Modelfiles. */
const PARAMETERS: Readonly<Partial<Record<keyof GenerateOptions, string>>> = {
  maxTokens: 'num_predict',
  temperature: 'temperature',
  topK: 'top_k',
  topP: 'top_p',
  minP: 'min_p',
  typicalP: 'typical_p',
  seed: 'seed',
  stop: 'stop',
  repetitionPenalty: 'repeat_penalty',
  penaltyWindow: 'repeat_last_n',
  presencePenalty: 'presence_penalty',
  frequencyPenalty: 'frequency_penalty',
};

/** Conversations are saved as models: `reference` with a system prompt, parameters and the first messages. */
export function createSavedChats(saved: SavedModels, reference: string, now: () => number): SavedChats {
  return {
    async save(name, { system, params, messages }) {
      const parameters = Object.fromEntries(
        Object.entries(PARAMETERS).flatMap(([option, parameter]) => {
          const value = params[option as keyof GenerateOptions];
          return value == null ? [] : [[parameter, value] as const];
        }),
      );
      const turns = messages.map(({ role, content }) => ({ role, content }));
      const from = reference === name ? ((await saved.find(name))?.from ?? reference) : reference;
      await saved.save(name, { from, system, parameters, adapter: null, messages: turns, createdMs: now() });
    },
    async load(name, session) {
      const model = await saved.find(name);
      if (model === null) throw new RuvLLMError('invalid_option', `no conversation is saved as ${name}`);
      if (model.from !== reference && name !== reference) {
        throw new RuvLLMError('invalid_option', `${name} is of ${model.from}; continue it with ruvllm run ${name}`);
      }
      session.setSystem(model.system);
      session.setParams(readOptions(model.parameters));
      session.setMessages(model.messages as readonly ChatMessage[]);
    },
  };
}
