import type { OutputConstraint } from '../../generate-job.ts';
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

/** `output_config`: what the answer must look like; `effort` is about thinking, which there is none of. */
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

/** `thinking`: only that there shall be none. */
export const thinkingField: Field<'disabled'> = {
  schema: { type: 'object', properties: { type: { enum: ['disabled'] } }, required: ['type'] },
  read(value, path) {
    const { type } = readFields<{ type: string }>(
      value,
      { type: choiceField(['disabled', 'enabled', 'adaptive', 'between_tools']) },
      { path, ignored: ['budget_tokens', 'display'] },
    );
    if (required(type, `${path}.type`) !== 'disabled') throw unsupported(path, `thinking (${JSON.stringify(type)})`);
    return 'disabled';
  },
};
