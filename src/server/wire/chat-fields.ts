import type { GenerateOptions } from '../../runtime/generate-options.ts';
import { choiceField, objectField } from './fields.ts';

/** Levels of thinking, as OpenAI names them. */
export const effortField = choiceField(['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max']);

/** Fields that say how a conversation is shown to the model; the runtime knows which of them its template can be told. */
export const CHAT_FIELDS = { chat_template_kwargs: objectField, reasoning_effort: effortField };

/** What was given, as the runtime calls it. */
export function toChatOptions(given: {
  readonly chat_template_kwargs: Readonly<Record<string, unknown>> | null;
  readonly reasoning_effort: GenerateOptions['reasoning'] | null;
}): Pick<GenerateOptions, 'templateVariables' | 'reasoning'> {
  const { chat_template_kwargs: variables, reasoning_effort: effort } = given;
  return {
    ...(variables === null ? {} : { templateVariables: variables }),
    ...(effort == null ? {} : { reasoning: effort }),
  };
}
