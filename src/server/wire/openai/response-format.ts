import type { OutputConstraint } from '../../../runtime/requests/generation-request.ts';
import {
  booleanField,
  choiceField,
  type Field,
  invalid,
  objectField,
  readFields,
  required,
  requiredField,
  stringField,
} from '../fields.ts';

const formatTypeField = choiceField(['text', 'json_object', 'json_schema']);

/** `response_format`: the format of the answer. */
export const responseFormatField: Field<OutputConstraint | 'text'> = {
  schema: {
    type: 'object',
    properties: { type: formatTypeField.schema, json_schema: { type: 'object' } },
    required: ['type'],
  },
  read(value, path) {
    const fields = { type: requiredField(formatTypeField), json_schema: objectField };
    const { type, json_schema: jsonSchema } = readFields(value, fields, { path });
    if (type === 'text') return 'text';
    if (type === 'json_object') return { kind: 'json_object' };
    const where = `${path}.json_schema`;
    const { name, schema, strict } = readFields(
      required(jsonSchema, where),
      {
        name: requiredField(stringField(64, 1)),
        description: stringField(65_536),
        schema: objectField,
        strict: booleanField,
      },
      { path: where },
    );
    // As in OpenAI's API, any JSON object is valid without a schema.
    return { kind: 'json_schema', name, schema: schema ?? {}, isStrict: strict ?? false };
  },
};

/** The constraint of a request; throws a 400 if there are several. */
export function constraintOf(fields: {
  readonly response_format: OutputConstraint | 'text' | null;
  readonly grammar: string | null;
  readonly regex: string | null;
}): OutputConstraint | null {
  const { response_format: format, grammar, regex } = fields;
  const constraints: OutputConstraint[] = [];
  if (format !== null && format !== 'text') constraints.push(format);
  if (grammar !== null) constraints.push({ kind: 'grammar', grammar });
  if (regex !== null) constraints.push({ kind: 'regex', pattern: regex });
  if (constraints.length > 1) {
    throw invalid('response_format', "the only one of 'response_format', 'grammar' and 'regex'", constraints);
  }
  return constraints[0] ?? null;
}

/** The field of a constraint, for error messages. */
export function constraintFieldOf(constraint: OutputConstraint | null): { readonly grammar?: string } {
  if (constraint === null) return {};
  return {
    grammar: constraint.kind === 'grammar' || constraint.kind === 'regex' ? constraint.kind : 'response_format',
  };
}
