import type { ToolChoice, ToolSpec } from '../../../runtime/requests/generation-request.ts';
import {
  booleanField,
  choiceField,
  type Field,
  isObject,
  objectField,
  readFields,
  requiredField,
  stringField,
} from '../fields.ts';

const functionType = choiceField(['function']);
const nameField = requiredField(stringField(64, 1));
const FIELDS = { type: requiredField(functionType), function: requiredField(objectField) };
const choiceWord = choiceField(['auto', 'none', 'required']);

/** A tool in OpenAI's format. */
export const toolField: Field<ToolSpec> = {
  schema: {
    type: 'object',
    properties: { type: functionType.schema, function: { type: 'object' } },
    required: ['type', 'function'],
  },
  read(value, path) {
    const { name, description, parameters, strict } = readFields(
      readFields(value, FIELDS, { path }).function,
      { name: nameField, description: stringField(65_536), parameters: objectField, strict: booleanField },
      { path: `${path}.function` },
    );
    return { name, description, parameters, isStrict: strict ?? false };
  },
};

/** `auto`, `none`, `required`, or one function by name. */
export const toolChoiceField: Field<ToolChoice> = {
  schema: { oneOf: [choiceWord.schema, { type: 'object' }] },
  read(value, path) {
    if (!isObject(value)) return choiceWord.read(value, path);
    return readFields(readFields(value, FIELDS, { path }).function, { name: nameField }, { path: `${path}.function` });
  },
};
