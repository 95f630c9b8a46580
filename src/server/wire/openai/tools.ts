import type { ToolChoice, ToolSpec } from '../../../runtime/requests/generation-request.ts';
import {
  booleanField,
  choiceField,
  type Field,
  isObject,
  objectField,
  readFields,
  required,
  stringField,
} from '../fields.ts';

interface FunctionFields {
  name: string;
  description: string;
  parameters: Readonly<Record<string, unknown>>;
  strict: boolean;
}

const functionType = choiceField(['function']);
const nameField = stringField(64, 1);
const choiceWord = choiceField(['auto', 'none', 'required']);

/** A tool as OpenAI spells it. */
export const toolField: Field<ToolSpec> = {
  schema: {
    type: 'object',
    properties: { type: functionType.schema, function: { type: 'object' } },
    required: ['type', 'function'],
  },
  read(value, path) {
    const { type, function: given } = readFields<{ type: 'function'; function: object }>(
      value,
      { type: functionType, function: objectField },
      { path },
    );
    required(type, `${path}.type`);
    const where = `${path}.function`;
    const { name, description, parameters, strict } = readFields<FunctionFields>(
      required(given, where),
      { name: nameField, description: stringField(65_536), parameters: objectField, strict: booleanField },
      { path: where },
    );
    return { name: required(name, `${where}.name`), description, parameters, isStrict: strict ?? false };
  },
};

/** `auto`, `none`, `required`, or one function by name. */
export const toolChoiceField: Field<ToolChoice> = {
  schema: { oneOf: [choiceWord.schema, { type: 'object' }] },
  read(value, path) {
    if (!isObject(value)) return choiceWord.read(value, path);
    const { type, function: given } = readFields<{ type: 'function'; function: object }>(
      value,
      { type: functionType, function: objectField },
      { path },
    );
    required(type, `${path}.type`);
    const { name } = readFields<{ name: string }>(
      required(given, `${path}.function`),
      { name: nameField },
      { path: `${path}.function` },
    );
    return { name: required(name, `${path}.function.name`) };
  },
};
