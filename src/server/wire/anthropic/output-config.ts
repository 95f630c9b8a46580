import type { OutputConstraint } from '../../../runtime/requests/generation-request.ts';
import { choiceField, type Field, ignoredFields, objectField, readFields, requiredField, schemaOf } from '../fields.ts';

const FORMAT = { type: requiredField(choiceField(['json_schema'])), schema: requiredField(objectField) };

const formatField: Field<OutputConstraint> = {
  schema: { type: 'object', properties: { type: FORMAT.type.schema, schema: { type: 'object' } } },
  read(value, path) {
    const { schema } = readFields(value, FORMAT, { path });
    return { kind: 'json_schema', name: 'output', schema, isStrict: true };
  },
};

/** The older name of `output_config.format`. */
export const outputFormatField = formatField;

const OUTPUT_CONFIG = { format: formatField, ...ignoredFields('effort') };

/** `output_config`: the format of the answer. */
export const outputConfigField: Field<{ readonly constraint: OutputConstraint | null }> = {
  schema: schemaOf(OUTPUT_CONFIG),
  read: (value, path) => ({ constraint: readFields(value, OUTPUT_CONFIG, { path }).format }),
};

/** Whether the answer contains the reasoning, and the template's setting. */
export interface Thinking {
  readonly isShown: boolean;
  readonly wish: 'none' | 'auto' | 'on';
}

const THINKING = {
  disabled: { isShown: false, wish: 'none' },
  enabled: { isShown: true, wish: 'on' },
  adaptive: { isShown: true, wish: 'auto' },
  // Templates have no such setting.
  between_tools: { isShown: true, wish: 'auto' },
} as const satisfies Readonly<Record<string, Thinking>>;

/** The default, because hidden reasoning would still count as tokens. */
export const NO_THINKING: Thinking = THINKING.disabled;

const THINKING_FIELDS = {
  type: requiredField(choiceField(['disabled', 'enabled', 'adaptive', 'between_tools'])),
  ...ignoredFields('budget_tokens', 'display'),
};

/** `thinking`: whether the model reasons first. */
export const thinkingField: Field<Thinking> = {
  schema: schemaOf(THINKING_FIELDS),
  read(value, path) {
    return THINKING[readFields(value, THINKING_FIELDS, { path }).type];
  },
};
