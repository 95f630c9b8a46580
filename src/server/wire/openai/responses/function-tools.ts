import type { ToolChoice, ToolSpec } from '../../../../runtime/requests/generation-request.ts';
import {
  booleanField,
  choiceField,
  type Field,
  ignoredFields,
  isObject,
  objectField,
  readFields,
  requiredField,
  schemaOf,
  stringField,
} from '../../fields.ts';
import { unsupported } from '../../unsupported.ts';
import { mcpToolField, type McpToolSpec } from './mcp-tools.ts';

const TOOL = {
  type: requiredField(choiceField(['function'])),
  name: requiredField(stringField(64, 1)),
  description: stringField(65_536),
  parameters: objectField,
  strict: booleanField,
  ...ignoredFields('defer_loading'),
};
const choiceWord = choiceField(['auto', 'none', 'required']);

/** Other types of tools are unsupported, not invalid. */
function requireFunction(value: unknown, path: string): void {
  const type = isObject(value) ? value['type'] : null;
  if (typeof type === 'string' && type !== 'function') {
    throw unsupported(`${path}.type`, `a tool ${JSON.stringify(type.slice(0, 40))}`);
  }
}

/** A tool in the flat format of this API, or an MCP server. */
export const toolField: Field<ToolSpec | McpToolSpec> = {
  schema: { oneOf: [schemaOf(TOOL), mcpToolField.schema] },
  read(value, path) {
    if (isObject(value) && value['type'] === 'mcp') return mcpToolField.read(value, path);
    requireFunction(value, path);
    const { name, description, parameters, strict } = readFields(value, TOOL, { path });
    // Strict by default, unlike in chat completions.
    return { name, description, parameters, isStrict: strict ?? true };
  },
};

/** A choice of this API: the tool of an MCP server has its name there. */
export type ResponseToolChoice = ToolChoice | { readonly label: string; readonly name: string };

const MCP_CHOICE = {
  type: requiredField(choiceField(['mcp'])),
  server_label: requiredField(stringField(64, 1)),
  name: requiredField(stringField(128, 1)),
};

export const toolChoiceField: Field<ResponseToolChoice> = {
  schema: { oneOf: [choiceWord.schema, { type: 'object' }] },
  read(value, path) {
    if (!isObject(value)) return choiceWord.read(value, path);
    if (value['type'] === 'mcp') {
      const { server_label: label, name } = readFields(value, MCP_CHOICE, { path });
      return { label, name };
    }
    requireFunction(value, path);
    return { name: readFields(value, { type: choiceField(['function']), name: TOOL.name }, { path }).name };
  },
};
