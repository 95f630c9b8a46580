import type { ChatMessage } from '../../runtime/lower-layers.ts';
import { parseArguments, resultTurn, runCall, textOutput, type ToolLoop } from '../../runtime/tools/tool-loop.ts';
import type { ToolOutput } from '../../runtime/tools/runnable-tool.ts';
import type { McpPart } from '../wire/openai/responses/mcp-items.ts';
import type { Approvals } from '../wire/openai/responses/mcp-tools.ts';
import type { RequestTool } from './request-tools.ts';

/** The result of a call whose consent is `ask`. */
export const ASK_REFUSED =
  "Error: this tool requires the operator's consent before each call, which cannot be given over HTTP. The operator can set its consent to allow.";
const NOT_APPROVED = 'Error: the user did not approve this call. Do not repeat it.';

/** Runs approved calls of earlier answers; each result goes right after the turn of its call. */
export async function settleApprovals(
  context: Pick<ToolLoop, 'signal' | 'now' | 'record' | 'reuse'>,
  tools: readonly RequestTool[],
  { requests, responses }: Approvals,
  turns: readonly ChatMessage[],
): Promise<{ readonly parts: readonly McpPart[]; readonly settled: readonly ChatMessage[] }> {
  const parts: McpPart[] = [];
  let settled = [...turns];
  for (const [id, isApproved] of responses) {
    const asked = requests.get(id);
    const turnIndex = settled.findLastIndex(({ toolCalls }) => toolCalls?.some((call) => call.id === id) === true);
    const isAnswered = settled.some(({ toolCallId }) => toolCallId === id);
    if (asked === undefined || turnIndex < 0 || isAnswered) continue;
    const call = settled[turnIndex]!.toolCalls!.find((one) => one.id === id)!;
    const runnable = tools.find(({ label, tool }) => label === asked.label && tool.name === asked.name)?.runnable;
    // The arguments that were shown to the user, not those of a turn that the caller may have changed since.
    const args = parseArguments(asked.arguments);
    const refuse = (text: string): ToolOutput => {
      const output = textOutput(text, 'refused');
      context.record({ call, origin: runnable?.origin ?? null, arguments: args ?? {}, output, durationMs: 0 });
      return output;
    };
    const output =
      runnable === undefined || args === null
        ? textOutput(`Error: the tool ${asked.name} is not offered any more.`, 'failed')
        : !isApproved
          ? refuse(NOT_APPROVED)
          : runnable.consent === 'ask'
            ? refuse(ASK_REFUSED)
            : (await runCall(context, runnable, { call, origin: runnable.origin, arguments: args })).output;
    parts.push({
      type: 'mcp_call',
      label: asked.label,
      name: asked.name,
      arguments: asked.arguments,
      output,
      approvalId: id,
    });
    let at = turnIndex + 1;
    while (settled[at]?.role === 'tool') at++;
    settled = [...settled.slice(0, at), resultTurn(call, output), ...settled.slice(at)];
  }
  return { parts, settled };
}
