import type { OfferedTool } from '../../../../runtime/lower-layers.ts';
import type { ToolOutput } from '../../../../runtime/tools/runnable-tool.ts';

/** The part of a response's head that ids are made of. */
type Head = { readonly id: string };

/** A part of a response that comes from an MCP server. */
export type McpPart =
  | { readonly type: 'mcp_list_tools'; readonly label: string; readonly tools: readonly OfferedTool[] }
  | {
      readonly type: 'mcp_call';
      readonly label: string;
      readonly name: string;
      arguments: string;
      /** Null: it has not ended. */
      output: ToolOutput | null;
      /** The request for approval that was approved or not; null: none was needed. */
      readonly approvalId: string | null;
    }
  | {
      readonly type: 'mcp_approval_request';
      readonly label: string;
      readonly name: string;
      readonly arguments: string;
    };

const ID_PREFIXES = { mcp_list_tools: 'mcpl', mcp_call: 'mcp', mcp_approval_request: 'mcpr' } as const;

/** Ids of items are derived from the id of their response. */
export const mcpItemId = ({ id }: Head, { type }: McpPart, index: number): string =>
  `${ID_PREFIXES[type]}_${id.slice('resp_'.length)}_${index}`;

const hasFailed = ({ outcome }: ToolOutput): boolean => outcome === 'failed' || outcome === 'refused';

/** An item; a call that ended without a result was cut off. */
export function writeMcpItem(head: Head, part: McpPart, index: number, isEnded: boolean): object {
  const { type, label } = part;
  const start = { id: mcpItemId(head, part, index), type, server_label: label };
  if (part.type === 'mcp_list_tools') return { ...start, tools: part.tools.map(writeTool), error: null };
  const call = { ...start, name: part.name, arguments: part.arguments };
  if (part.type === 'mcp_approval_request') return call;
  const { output, approvalId } = part;
  const isFailed = output !== null && hasFailed(output);
  return {
    ...call,
    status: output === null ? (isEnded ? 'incomplete' : 'in_progress') : isFailed ? 'failed' : 'completed',
    approval_request_id: approvalId,
    output: output === null || isFailed ? null : output.text,
    error: isFailed ? { type: 'mcp_tool_execution_error', content: [{ type: 'text', text: output.text }] } : null,
  };
}

const writeTool = ({ name, description, inputSchema, isReadOnly }: OfferedTool): object => ({
  name,
  description: description === '' ? null : description,
  input_schema: inputSchema,
  annotations: { readOnlyHint: isReadOnly },
});

export const isMcpPart = (part: { readonly type: string }): part is McpPart => Object.hasOwn(ID_PREFIXES, part.type);

/** The events that come before `response.output_item.done`, after the item was added. */
export function* mcpEvents(
  head: Head,
  part: McpPart,
  index: number,
): Generator<readonly [type: string, fields: object]> {
  const item = { item_id: mcpItemId(head, part, index), output_index: index };
  if (part.type === 'mcp_list_tools') {
    yield ['response.mcp_list_tools.in_progress', item];
    yield ['response.mcp_list_tools.completed', item];
  }
  if (part.type === 'mcp_call' && part.output !== null) {
    yield [hasFailed(part.output) ? 'response.mcp_call.failed' : 'response.mcp_call.completed', item];
  }
}
