import type { ToolChoice, ToolSpec } from '../../../../runtime/requests/generation-request.ts';
import {
  booleanField,
  choiceField,
  type Field,
  isObject,
  objectField,
  readFields,
  requiredField,
  stringField,
} from '../../fields.ts';
import { unsupported } from '../../unsupported.ts';

const TOOL = {
  type: requiredField(choiceField(['function'])),
  name: requiredField(stringField(64, 1)),
  description: stringField(65_536),
  parameters: objectField,
  strict: booleanField,
};
const choiceWord = choiceField(['auto', 'none', 'required']);

/** A type this server has no tool for is not a mistake, but a thing it cannot do. */
function requireFunction(value: unknown, path: string): void {
  const type = isObject(value) ? value['type'] : null;
  if (typeof type === 'string' && type !== 'function') {
    throw unsupported(`${path}.type`, `a tool ${JSON.stringify(type.slice(0, 40))}`);
  }
}

/** A function as this API spells it: flat. */
export const functionToolField: Field<ToolSpec> = {
  schema: {
    type: 'object',
    properties: { type: TOOL.type.schema, name: TOOL.name.schema, parameters: { type: 'object' } },
    required: ['type', 'name'],
  },
  read(value, path) {
    requireFunction(value, path);
    const { name, description, parameters, strict } = readFields(value, TOOL, { path, ignored: ['defer_loading'] });
    // Strict unless told otherwise: here the default differs from that of chat completions.
    return { name, description, parameters, isStrict: strict ?? true };
  },
};

export const functionChoiceField: Field<ToolChoice> = {
  schema: { oneOf: [choiceWord.schema, { type: 'object' }] },
  read(value, path) {
    if (!isObject(value)) return choiceWord.read(value, path);
    requireFunction(value, path);
    return { name: readFields(value, { type: choiceField(['function']), name: TOOL.name }, { path }).name };
  },
};
