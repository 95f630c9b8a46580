import type { GenerateOptions } from '../../runtime/generate-options.ts';
import { MAX_RETRIES } from '../../runtime/reflection/options.ts';
import { booleanField, choiceField, type Field, integerField, numberField, objectField, readFields, schemaOf } from './fields.ts';
import { conflict } from './spellings.ts';

/** OpenAI's levels of reasoning. */
export const effortField = choiceField(['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max']);

const REFLECTION = {
  max_retries: integerField(1, MAX_RETRIES),
  min_gain: numberField(0, 1),
  min_confidence: numberField(0, 1),
};

/** Whether an answer that cannot be used is retried with its error: true, or settings. */
const reflectionField: Field<NonNullable<GenerateOptions['reflection']>> = {
  schema: { oneOf: [booleanField.schema, schemaOf(REFLECTION)], description: 'not in OpenAI’s API: retries answers that cannot be used' },
  read(value, path) {
    if (typeof value === 'boolean') return value;
    const { max_retries, min_gain, min_confidence } = readFields(value, REFLECTION, { path });
    return {
      ...(max_retries === null ? {} : { maxRetries: max_retries }),
      ...(min_gain === null ? {} : { minGain: min_gain }),
      ...(min_confidence === null ? {} : { minConfidence: min_confidence }),
    };
  },
};

/** Settings of the chat template. A template without a setting for reasoning ignores it. */
export const CHAT_FIELDS = {
  chat_template_kwargs: objectField,
  reasoning_effort: effortField,
  enable_thinking: booleanField,
  reflection: reflectionField,
};

/** The options of the runtime for these fields. */
export function toChatOptions(fields: {
  readonly chat_template_kwargs: Readonly<Record<string, unknown>> | null;
  readonly reasoning_effort: GenerateOptions['reasoning'] | null;
  readonly enable_thinking?: boolean | null;
  readonly reflection?: GenerateOptions['reflection'] | null;
}): Pick<GenerateOptions, 'templateVariables' | 'reasoning' | 'reflection'> {
  const { chat_template_kwargs: variables, reasoning_effort: effort, enable_thinking: isOn = null, reflection = null } = fields;
  if (effort != null && isOn !== null && isOn === (effort === 'none')) {
    throw conflict('reasoning_effort', 'enable_thinking');
  }
  const reasoning = effort ?? (isOn === null ? null : isOn ? 'on' : 'none');
  return {
    ...(variables === null ? {} : { templateVariables: variables }),
    ...(reasoning === null ? {} : { reasoning }),
    ...(reflection === null ? {} : { reflection }),
  };
}
