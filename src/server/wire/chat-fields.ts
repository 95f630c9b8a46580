import type { GenerateOptions } from '../../runtime/generate-options.ts';
import { choiceField, objectField } from './fields.ts';

/** OpenAI's levels of reasoning. */
export const effortField = choiceField(['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max']);

/** Settings of the chat template; the runtime knows which of them a template supports. */
export const CHAT_FIELDS = { chat_template_kwargs: objectField, reasoning_effort: effortField };

/** The options of the runtime for these fields. */
export function toChatOptions(fields: {
  readonly chat_template_kwargs: Readonly<Record<string, unknown>> | null;
  readonly reasoning_effort: GenerateOptions['reasoning'] | null;
}): Pick<GenerateOptions, 'templateVariables' | 'reasoning'> {
  const { chat_template_kwargs: variables, reasoning_effort: effort } = fields;
  return {
    ...(variables === null ? {} : { templateVariables: variables }),
    ...(effort == null ? {} : { reasoning: effort }),
  };
}
