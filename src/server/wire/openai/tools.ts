import type { ToolChoice, ToolSpec } from '../../../runtime/requests/generation-request.ts';
import {
  booleanField,
  choiceField,
  type Field,
  isObject,
  objectField,
  readFields,
  requiredField,
  schemaOf,
  stringField,
} from '../fields.ts';
import { conflict } from '../spellings.ts';

const functionType = choiceField(['function']);
const nameField = requiredField(stringField(64, 1));
const FIELDS = { type: requiredField(functionType), function: requiredField(objectField) };
const FUNCTION = {
  name: nameField,
  description: stringField(65_536),
  parameters: objectField,
  strict: booleanField,
};
/** `any` is Mistral's name of `required`. */
const choiceWord = choiceField(['auto', 'none', 'required', 'any']);

/** A function: a tool of the older form, or the inner part of one. */
export const functionField: Field<ToolSpec> = {
  schema: schemaOf(FUNCTION),
  read(value, path) {
    const { name, description, parameters, strict } = readFields(value, FUNCTION, { path });
    return { name, description, parameters, isStrict: strict ?? false };
  },
};

/** A tool in OpenAI's format. */
export const toolField: Field<ToolSpec> = {
  schema: {
    type: 'object',
    properties: { type: functionType.schema, function: { type: 'object' } },
    required: ['type', 'function'],
  },
  read: (value, path) => functionField.read(readFields(value, FIELDS, { path }).function, `${path}.function`),
};

/** `auto`, `none`, `required`, or one function by name. */
export const toolChoiceField: Field<ToolChoice> = {
  schema: { oneOf: [choiceWord.schema, { type: 'object' }] },
  read(value, path) {
    if (isObject(value)) {
      const { function: named } = readFields(value, FIELDS, { path });
      return readFields(named, { name: nameField }, { path: `${path}.function` });
    }
    const word = choiceWord.read(value, path);
    return word === 'any' ? 'required' : word;
  },
};

const olderWord = choiceField(['auto', 'none']);

/** `function_call`, the older form of `tool_choice`. */
export const functionCallField: Field<ToolChoice> = {
  schema: { oneOf: [olderWord.schema, { type: 'object' }] },
  read: (value, path) =>
    isObject(value) ? readFields(value, { name: nameField }, { path }) : olderWord.read(value, path),
};

/** The tools of a request, in one form or the other. */
export function toolsOf(fields: {
  readonly tools: readonly ToolSpec[] | null;
  readonly tool_choice: ToolChoice | null;
  readonly functions: readonly ToolSpec[] | null;
  readonly function_call: ToolChoice | null;
}): { readonly tools: readonly ToolSpec[]; readonly toolChoice: ToolChoice; readonly isOlderForm: boolean } {
  const { tools, functions } = fields;
  if (tools !== null && functions !== null) throw conflict('tools', 'functions');
  if (fields.tool_choice !== null && fields.function_call !== null) throw conflict('tool_choice', 'function_call');
  const toolChoice = fields.tool_choice ?? fields.function_call ?? 'auto';
  return {
    tools: toolChoice === 'none' ? [] : (tools ?? functions ?? []),
    toolChoice,
    isOlderForm: functions !== null,
  };
}
