import type { ToolChoice, ToolSpec } from '../../../runtime/requests/generation-request.ts';
import {
  booleanField,
  choiceField,
  type Field,
  invalid,
  isObject,
  objectField,
  readFields,
  required,
  stringField,
} from '../fields.ts';
import { unsupported } from '../unsupported.ts';

interface ToolFields {
  type: string;
  name: string;
  description: string;
  input_schema: Readonly<Record<string, unknown>>;
  strict: boolean;
}

const TOOL = {
  type: stringField(256),
  name: stringField(128, 1),
  description: stringField(65_536),
  input_schema: objectField,
  strict: booleanField,
} as const;

/** A tool of the client's; those that Anthropic runs itself have another type. */
export const toolField: Field<ToolSpec> = {
  schema: {
    type: 'object',
    properties: { name: TOOL.name.schema, description: TOOL.description.schema, input_schema: { type: 'object' } },
    required: ['name', 'input_schema'],
  },
  read(value, path) {
    const type = isObject(value) ? value['type'] : null;
    if (typeof type === 'string' && type !== 'custom') {
      throw unsupported(`${path}.type`, `a tool ${JSON.stringify(type.slice(0, 40))}`);
    }
    const { name, description, input_schema, strict } = readFields<ToolFields>(value, TOOL, {
      path,
      ignored: ['cache_control', 'eager_input_streaming', 'input_examples', 'allowed_callers', 'defer_loading'],
    });
    return {
      name: required(name, `${path}.name`),
      description,
      parameters: required(input_schema, `${path}.input_schema`),
      isStrict: strict ?? false,
    };
  },
};

/** Which tools are to be used, and how many at a time. */
export interface ToolUse {
  readonly choice: ToolChoice;
  readonly canCallInParallel: boolean;
}

const CHOICES = { auto: 'auto', any: 'required', none: 'none' } as const;
const CHOICE = {
  type: choiceField(['auto', 'any', 'none', 'tool']),
  name: stringField(128, 1),
  disable_parallel_tool_use: booleanField,
} as const;

export const toolChoiceField: Field<ToolUse> = {
  schema: {
    type: 'object',
    properties: { type: CHOICE.type.schema, name: CHOICE.name.schema },
    required: ['type'],
  },
  read(value, path) {
    const given = readFields<{ type: keyof typeof CHOICES | 'tool'; name: string; disable_parallel_tool_use: boolean }>(
      value,
      CHOICE,
      { path },
    );
    const type = required(given.type, `${path}.type`);
    const canCallInParallel = given.disable_parallel_tool_use !== true;
    if (type === 'tool') return { choice: { name: required(given.name, `${path}.name`) }, canCallInParallel };
    if (given.name !== null) throw invalid(`${path}.name`, "left out unless the type is 'tool'", given.name);
    return { choice: CHOICES[type], canCallInParallel };
  },
};
