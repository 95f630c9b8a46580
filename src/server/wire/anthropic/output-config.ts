import type { OutputConstraint } from '../../../runtime/requests/generation-request.ts';
import { choiceField, type Field, objectField, readFields, requiredField } from '../fields.ts';
import { unsupported } from '../unsupported.ts';

const FORMAT = { type: requiredField(choiceField(['json_schema'])), schema: requiredField(objectField) };

const formatField: Field<OutputConstraint> = {
  schema: { type: 'object', properties: { type: FORMAT.type.schema, schema: { type: 'object' } } },
  read(value, path) {
    const { schema } = readFields(value, FORMAT, { path });
    return { kind: 'json_schema', name: 'output', schema, isStrict: true };
  },
};

/** `output_config`: what the answer must look like; `effort` has no words in most templates. */
export const outputConfigField: Field<{ readonly constraint: OutputConstraint | null }> = {
  schema: { type: 'object', properties: { format: formatField.schema } },
  read: (value, path) => ({
    constraint: readFields(value, { format: formatField }, { path, ignored: ['effort'] }).format,
  }),
};

/** Whether there are thoughts in the answer, and what the model is told of thinking. */
export interface Thinking {
  readonly isShown: boolean;
  readonly wish: 'none' | 'auto' | 'on';
}

const THINKING: Readonly<Record<string, Thinking>> = {
  disabled: { isShown: false, wish: 'none' },
  enabled: { isShown: true, wish: 'on' },
  adaptive: { isShown: true, wish: 'auto' },
};

/** Unless it is asked for there is none: thoughts that nobody sees would still count as tokens. */
export const NO_THINKING = THINKING['disabled']!;

/** `thinking`: whether the model shall think first. How long is its own matter: `budget_tokens` is not enforced. */
export const thinkingField: Field<Thinking> = {
  schema: { type: 'object', properties: { type: { enum: Object.keys(THINKING) } }, required: ['type'] },
  read(value, path) {
    const fields = { type: requiredField(choiceField(['disabled', 'enabled', 'adaptive', 'between_tools'])) };
    const { type } = readFields(value, fields, { path, ignored: ['budget_tokens', 'display'] });
    const thinking = THINKING[type];
    if (thinking === undefined) throw unsupported(path, `thinking (${JSON.stringify(type)})`);
    return thinking;
  },
};
