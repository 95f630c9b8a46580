import type { ToolChoice, ToolSpec } from '../../../runtime/requests/generation-request.ts';
import {
  booleanField,
  choiceField,
  type Field,
  ignoredFields,
  invalid,
  isObject,
  objectField,
  readFields,
  required,
  requiredField,
  schemaOf,
  stringField,
} from '../fields.ts';
import { unsupported } from '../unsupported.ts';
import { cacheControlField } from './cache-control.ts';

const TOOL = {
  type: stringField(256),
  name: requiredField(stringField(128, 1)),
  description: stringField(65_536),
  input_schema: requiredField(objectField),
  strict: booleanField,
  cache_control: cacheControlField,
  ...ignoredFields('eager_input_streaming', 'input_examples', 'allowed_callers', 'defer_loading'),
};

/** A tool of the client; server tools have other types. */
export const toolField: Field<ToolSpec> = {
  schema: schemaOf(TOOL),
  read(value, path) {
    const type = isObject(value) ? value['type'] : null;
    if (typeof type === 'string' && type !== 'custom') {
      throw unsupported(`${path}.type`, `a tool ${JSON.stringify(type.slice(0, 40))}`);
    }
    const { name, description, input_schema, strict } = readFields(value, TOOL, { path });
    return { name, description, parameters: input_schema, isStrict: strict ?? false };
  },
};

/** Which tools may be used, and whether in parallel. */
export interface ToolUse {
  readonly choice: ToolChoice;
  readonly canCallInParallel: boolean;
}

const CHOICES = { auto: 'auto', any: 'required', none: 'none' } as const;
const CHOICE = {
  type: requiredField(choiceField(['auto', 'any', 'none', 'tool'])),
  name: stringField(128, 1),
  disable_parallel_tool_use: booleanField,
};

export const toolChoiceField: Field<ToolUse> = {
  schema: schemaOf(CHOICE),
  read(value, path) {
    const { type, name, disable_parallel_tool_use: isSerial } = readFields(value, CHOICE, { path });
    const canCallInParallel = isSerial !== true;
    if (type === 'tool') return { choice: { name: required(name, `${path}.name`) }, canCallInParallel };
    if (name !== null) throw invalid(`${path}.name`, "left out unless the type is 'tool'", name);
    return { choice: CHOICES[type], canCallInParallel };
  },
};
