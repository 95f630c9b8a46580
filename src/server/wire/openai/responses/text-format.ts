import type { OutputConstraint } from '../../../../runtime/requests/generation-request.ts';
import {
  booleanField,
  choiceField,
  type Field,
  ignoredFields,
  objectField,
  readFields,
  required,
  requiredField,
  schemaOf,
  stringField,
} from '../../fields.ts';

const FORMAT = {
  type: requiredField(choiceField(['text', 'json_object', 'json_schema'])),
  name: stringField(64, 1),
  description: stringField(65_536),
  schema: objectField,
  strict: booleanField,
};

const formatField: Field<OutputConstraint | 'text'> = {
  schema: { type: 'object', properties: { type: FORMAT.type.schema }, required: ['type'] },
  read(value, path) {
    const { type, name, schema, strict } = readFields(value, FORMAT, { path });
    if (type === 'text') return 'text';
    if (type === 'json_object') return { kind: 'json_object' };
    return {
      kind: 'json_schema',
      name: required(name, `${path}.name`),
      schema: required(schema, `${path}.schema`),
      isStrict: strict ?? false,
    };
  },
};

const TEXT = { format: formatField, ...ignoredFields('verbosity') };

/** `text`: the format of the answer. */
export const textField: Field<{ readonly constraint: OutputConstraint | null }> = {
  schema: schemaOf(TEXT),
  read(value, path) {
    const { format } = readFields(value, TEXT, { path });
    return { constraint: format === 'text' ? null : format };
  },
};
