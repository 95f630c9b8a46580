import type { OutputConstraint } from '../../../runtime/requests/generation-request.ts';
import { choiceField, type Field, objectField, readFields, required } from '../fields.ts';
import { unsupported } from '../unsupported.ts';

const FORMAT = { type: choiceField(['json_schema']), schema: objectField } as const;

const formatField: Field<OutputConstraint> = {
  schema: { type: 'object', properties: { type: FORMAT.type.schema, schema: { type: 'object' } } },
  read(value, path) {
    const { type, schema } = readFields<{ type: 'json_schema'; schema: object }>(value, FORMAT, { path });
    required(type, `${path}.type`);
    return { kind: 'json_schema', name: 'output', schema: required(schema, `${path}.schema`), isStrict: true };
  },
};

/** `output_config`: what the answer must look like; `effort` has no words in most templates. */
export const outputConfigField: Field<{ readonly constraint: OutputConstraint | null }> = {
  schema: { type: 'object', properties: { format: formatField.schema } },
  read(value, path) {
    const { format } = readFields<{ format: OutputConstraint }>(
      value,
      { format: formatField },
      { path, ignored: ['effort'] },
    );
    return { constraint: format };
  },
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
    const { type } = readFields<{ type: string }>(
      value,
      { type: choiceField(['disabled', 'enabled', 'adaptive', 'between_tools']) },
      { path, ignored: ['budget_tokens', 'display'] },
    );
    const thinking = THINKING[required(type, `${path}.type`)];
    if (thinking === undefined) throw unsupported(path, `thinking (${JSON.stringify(type)})`);
    return thinking;
  },
};
