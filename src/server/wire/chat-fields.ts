import type { GenerateOptions } from '../../runtime/generate-options.ts';
import { booleanField, choiceField, objectField } from './fields.ts';
import { conflict } from './spellings.ts';

/** OpenAI's levels of reasoning. */
export const effortField = choiceField(['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max']);

/** Settings of the chat template. A template without a setting for reasoning ignores it. */
export const CHAT_FIELDS = {
  chat_template_kwargs: objectField,
  reasoning_effort: effortField,
  enable_thinking: booleanField,
};

/** The options of the runtime for these fields. */
export function toChatOptions(fields: {
  readonly chat_template_kwargs: Readonly<Record<string, unknown>> | null;
  readonly reasoning_effort: GenerateOptions['reasoning'] | null;
  readonly enable_thinking?: boolean | null;
}): Pick<GenerateOptions, 'templateVariables' | 'reasoning'> {
  const { chat_template_kwargs: variables, reasoning_effort: effort, enable_thinking: isOn = null } = fields;
  if (effort != null && isOn !== null && isOn === (effort === 'none')) {
    throw conflict('reasoning_effort', 'enable_thinking');
  }
  const reasoning = effort ?? (isOn === null ? null : isOn ? 'on' : 'none');
  return {
    ...(variables === null ? {} : { templateVariables: variables }),
    ...(reasoning === null ? {} : { reasoning }),
  };
}
