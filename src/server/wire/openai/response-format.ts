import type { OutputConstraint } from '../../../runtime/requests/generation-request.ts';
import {
  booleanField,
  choiceField,
  type Field,
  invalid,
  isObject,
  listField,
  missing,
  objectField,
  readFields,
  required,
  requiredField,
  schemaOf,
  stringField,
  type Values,
} from '../fields.ts';
import { oneSpelling } from '../spellings.ts';
import { unsupportedField } from '../unsupported.ts';

const MAX_GRAMMAR = 65_536;
const MAX_CHOICES = 1024;
/** OpenAI's types, then those of Text Generation Inference. */
const TYPES = ['text', 'json_object', 'json_schema', 'json', 'regex'] as const;

const asSchema = (schema: object, name = 'output', isStrict = false): OutputConstraint => ({
  kind: 'json_schema',
  name,
  schema,
  isStrict,
});

const mapField = <T, U>({ schema, read }: Field<T>, map: (value: T) => U): Field<U> => ({
  schema,
  read: (value, path) => map(read(value, path)),
});

const grammarText = stringField(MAX_GRAMMAR, 1);
const grammarField = mapField(grammarText, (grammar): OutputConstraint => ({ kind: 'grammar', grammar }));
const regexField = mapField(grammarText, (pattern): OutputConstraint => ({ kind: 'regex', pattern }));

/** A schema as an object, or as JSON text, which vLLM accepts too. */
const schemaField: Field<OutputConstraint> = {
  schema: { oneOf: [{ type: 'object' }, { type: 'string' }] },
  read(value, path) {
    const schema = typeof value === 'string' ? parseSchema(value) : value;
    if (!isObject(schema)) throw invalid(path, 'a JSON schema: an object, or its JSON text', value);
    return asSchema(schema);
  },
};

function parseSchema(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return null;
  }
}

/** One of these texts. */
const choicesField = mapField(listField(stringField(MAX_GRAMMAR, 1), MAX_CHOICES, 1), (choices): OutputConstraint => {
  const escaped = choices.map((choice) => choice.replaceAll(/[\\^$.*+?()[\]{}|/-]/g, '\\$&'));
  return { kind: 'regex', pattern: `(?:${escaped.join('|')})` };
});

const NAMED_SCHEMA = {
  name: stringField(64, 1),
  description: stringField(65_536),
  schema: objectField,
  strict: booleanField,
};
const FORMAT = {
  type: requiredField(choiceField(TYPES)),
  json_schema: objectField,
  schema: objectField,
  value: { schema: { oneOf: [{ type: 'object' }, { type: 'string' }] }, read: (value: unknown) => value },
};

/** `response_format`: OpenAI's forms, llama-server's `schema` and Text Generation Inference's `value`. */
const responseFormatField: Field<OutputConstraint | 'text'> = {
  schema: schemaOf(FORMAT),
  read(value, path) {
    const fields = readFields(value, FORMAT, { path });
    const { type } = fields;
    if (type === 'text') return 'text';
    if (type === 'regex') return regexField.read(required(fields.value, `${path}.value`), `${path}.value`);
    const spelling = oneSpelling(fields, 'json_schema', 'schema', 'value');
    if (spelling === null && type === 'json_object') return { kind: 'json_object' };
    if (spelling === null) throw missing(`${path}.${type === 'json' ? 'value' : 'json_schema'}`);
    const where = `${path}.${spelling.name}`;
    if (!isObject(spelling.value)) throw invalid(where, 'an object', spelling.value);
    // A plain schema, unless it is wrapped with a name. As in OpenAI's API, any JSON is valid without a schema.
    const isWrapped = spelling.name === 'json_schema' || isObject(spelling.value['schema']);
    if (!isWrapped) return asSchema(spelling.value);
    const { name, schema, strict } = readFields(spelling.value, NAMED_SCHEMA, { path: where });
    return asSchema(schema ?? {}, name ?? undefined, strict ?? false);
  },
};

const OUTPUTS = {
  json: schemaField,
  regex: regexField,
  choice: choicesField,
  grammar: grammarField,
  json_object: booleanField,
  structural_tag: unsupportedField('a structural tag'),
};

/** vLLM's `structured_outputs`: one of its forms. */
const outputsField: Field<OutputConstraint | 'text'> = {
  schema: schemaOf(OUTPUTS),
  read(value, path) {
    const { json_object: isObjectWanted, structural_tag: _, ...forms } = readFields(value, OUTPUTS, { path });
    const constraints = Object.entries(forms).flatMap(([name, form]) => (form === null ? [] : [{ name, form }]));
    if (isObjectWanted === true) constraints.push({ name: 'json_object', form: { kind: 'json_object' } });
    if (constraints.length > 1) {
      throw invalid(path, 'one form of output', constraints.map(({ name }) => name).join(' and '));
    }
    return constraints[0]?.form ?? 'text';
  },
};

/** Fields for the format of the answer: OpenAI's, ours and llama-server's, and those of vLLM. */
export const CONSTRAINT_FIELDS = {
  response_format: responseFormatField,
  grammar: grammarField,
  regex: regexField,
  json_schema: schemaField,
  guided_json: schemaField,
  guided_regex: regexField,
  guided_choice: choicesField,
  guided_grammar: grammarField,
  structured_outputs: outputsField,
};

const NAMES = Object.keys(CONSTRAINT_FIELDS) as (keyof typeof CONSTRAINT_FIELDS)[];

/** The constraint of a request and the field that set it, for error messages; two different ones are a 400. */
export function constraintOf(fields: Values<typeof CONSTRAINT_FIELDS>): {
  readonly constraint: OutputConstraint | null;
  readonly fieldNames: { readonly grammar?: string };
} {
  const constraints = Object.fromEntries(NAMES.map((name) => [name, fields[name] === 'text' ? null : fields[name]]));
  const spelling = oneSpelling(constraints as Record<(typeof NAMES)[number], OutputConstraint | null>, ...NAMES);
  if (spelling === null) return { constraint: null, fieldNames: {} };
  return { constraint: spelling.value, fieldNames: { grammar: spelling.name } };
}
