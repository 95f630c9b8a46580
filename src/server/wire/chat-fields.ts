import type { GenerateOptions } from '../../runtime/generate-options.ts';
import { choiceField, type Field, objectField } from './fields.ts';

/** Fields that say how a conversation is shown to the model; the runtime knows which of them its template can be told. */
export interface ChatFields {
  chat_template_kwargs: Readonly<Record<string, unknown>>;
  reasoning_effort: Effort;
}

/** Levels of thinking, as OpenAI names them. */
export type Effort = 'none' | 'minimal' | 'low' | 'medium' | 'high' | 'xhigh' | 'max';

export const effortField: Field<Effort> = choiceField(['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max']);

export const CHAT_FIELDS: { readonly [K in keyof ChatFields]: Field<ChatFields[K]> } = {
  chat_template_kwargs: objectField,
  reasoning_effort: effortField,
};

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
