import {
  booleanField,
  choiceField,
  type Field,
  ignoredFields,
  invalid,
  isObject,
  listField,
  readFields,
  requiredField,
  schemaOf,
  stringField,
} from '../../fields.ts';
import { unsupportedField } from '../../unsupported.ts';

/** A choice of tools of an MCP server. */
export interface McpToolFilter {
  /** Null: all names. */
  readonly names: readonly string[] | null;
  /** Null: tools that change something, too. */
  readonly isReadOnly: boolean | null;
}

/** An MCP server of a request. */
export interface McpToolSpec {
  readonly label: string;
  /** Null: the server of the operator with this label. */
  readonly url: string | null;
  readonly headers: Readonly<Record<string, string>>;
  /** Null: all tools. */
  readonly allowed: McpToolFilter | null;
  /** Whether the caller wants to approve a call of this tool first. */
  needsApproval(tool: { readonly name: string; readonly isReadOnly: boolean }): boolean;
}

const MAX_HEADERS = 32;
const HEADER_NAME = /^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}$/;
const HEADER_VALUE = /^[\t\x20-\x7e\x80-\xff]{0,8192}$/;

const headersField: Field<Readonly<Record<string, string>>> = {
  schema: { type: 'object', additionalProperties: { type: 'string' } },
  read(value, path) {
    const expected = `an object of at most ${MAX_HEADERS} HTTP headers`;
    if (!isObject(value) || Object.keys(value).length > MAX_HEADERS) throw invalid(path, expected, value);
    for (const [name, text] of Object.entries(value)) {
      if (!HEADER_NAME.test(name) || typeof text !== 'string' || !HEADER_VALUE.test(text))
        throw invalid(path, expected, value);
    }
    return value as Readonly<Record<string, string>>;
  },
};

const namesField = listField(stringField(128, 1), 1000);
const FILTER = { tool_names: namesField, read_only: booleanField };

function readFilter(value: unknown, path: string): McpToolFilter {
  const { tool_names: names, read_only: isReadOnly } = readFields(value, FILTER, { path });
  return { names, isReadOnly };
}

const filterField: Field<McpToolFilter> = {
  schema: { oneOf: [namesField.schema, schemaOf(FILTER)] },
  read: (value, path) =>
    Array.isArray(value) ? { names: namesField.read(value, path), isReadOnly: null } : readFilter(value, path),
};

export function matchesFilter(
  { names, isReadOnly }: McpToolFilter,
  tool: { name: string; isReadOnly: boolean },
): boolean {
  return (names === null || names.includes(tool.name)) && (isReadOnly === null || isReadOnly === tool.isReadOnly);
}

const approvalWord = choiceField(['always', 'never']);
const APPROVAL = {
  always: { schema: schemaOf(FILTER), read: readFilter },
  never: { schema: schemaOf(FILTER), read: readFilter },
};

/** `always` without more, as in OpenAI's API. */
const approvalField: Field<McpToolSpec['needsApproval']> = {
  schema: { oneOf: [approvalWord.schema, schemaOf(APPROVAL)] },
  read(value, path) {
    if (typeof value === 'string') {
      const needs = approvalWord.read(value, path) === 'always';
      return () => needs;
    }
    const { always, never } = readFields(value, APPROVAL, { path });
    return (tool) =>
      always !== null && matchesFilter(always, tool) ? true : !(never !== null && matchesFilter(never, tool));
  },
};

const MCP_TOOL = {
  type: requiredField(choiceField(['mcp'])),
  server_label: requiredField(stringField(64, 1)),
  server_url: stringField(2048, 1),
  server_description: stringField(65_536),
  headers: headersField,
  authorization: stringField(8192, 1),
  allowed_tools: filterField,
  require_approval: approvalField,
  connector_id: unsupportedField('a connector'),
  tunnel_id: unsupportedField('a tunnel'),
  ...ignoredFields('allowed_callers', 'defer_loading'),
};

/** An MCP server whose tools the model may call. */
export const mcpToolField: Field<McpToolSpec> = {
  schema: schemaOf(MCP_TOOL),
  read(value, path) {
    const { server_label: label, server_url: url, headers, authorization, allowed_tools: allowed, require_approval } = readFields(value, MCP_TOOL, { path }); // prettier-ignore
    if (url === null && (headers !== null || authorization !== null)) {
      throw invalid(`${path}.${headers === null ? 'authorization' : 'headers'}`, "left out without 'server_url'", '…');
    }
    if (authorization !== null && !HEADER_VALUE.test(authorization))
      throw invalid(`${path}.authorization`, 'a token', '…');
    const bearer = authorization === null ? {} : { authorization: `Bearer ${authorization}` };
    return { label, url, headers: { ...headers, ...bearer }, allowed, needsApproval: require_approval ?? (() => true) };
  },
};

/** A tool as responses repeat it, without its secrets. */
export function echoTool(tool: unknown): unknown {
  if (!isObject(tool) || tool['type'] !== 'mcp') return tool;
  const { headers: _headers, authorization: _token, ...shown } = tool;
  return shown;
}

/** An approval request, which is in an earlier output or in the input. */
export interface ApprovalRequest {
  readonly id: string;
  readonly label: string;
  readonly name: string;
  readonly arguments: string;
}

export interface Approvals {
  readonly requests: ReadonlyMap<string, ApprovalRequest>;
  /** By the id of the request. */
  readonly responses: ReadonlyMap<string, boolean>;
}

/** The approval requests and responses among items; other items and broken ones are passed over. */
export function findApprovals(items: readonly unknown[]): Approvals {
  const requests = new Map<string, ApprovalRequest>();
  const responses = new Map<string, boolean>();
  for (const item of items) {
    if (!isObject(item)) continue;
    const { type, id, server_label: label, name, arguments: args, approval_request_id: about, approve } = item;
    if (type === 'mcp_approval_request' && [id, label, name, args].every((text) => typeof text === 'string')) {
      requests.set(id as string, { id, label, name, arguments: args } as ApprovalRequest);
    }
    if (type === 'mcp_approval_response' && typeof about === 'string') responses.set(about, approve === true);
  }
  return { requests, responses };
}
