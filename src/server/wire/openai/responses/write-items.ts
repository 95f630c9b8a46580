import type { ChatMessage } from '../../../../runtime/lower-layers.ts';
import type { ConversationItem as Item } from '../../../stored/types.ts';

/** The items of a turn; `id` is their common part. */
export function writeItems(message: ChatMessage, id: string): Item[] {
  const { role, content, reasoning, toolCalls = [], toolCallId } = message;
  const status = 'completed';
  const items: object[] = [];
  if (toolCallId !== undefined) {
    return [{ id: `fco_${id}`, type: 'function_call_output', status, call_id: toolCallId, output: content } as Item];
  }
  if (reasoning !== undefined) {
    const thought = { type: 'reasoning_text', text: reasoning };
    items.push({ id: `rs_${id}`, type: 'reasoning', status, summary: [], content: [thought] });
  }
  if (content !== '' || (toolCalls.length === 0 && reasoning === undefined)) {
    const part =
      role === 'assistant'
        ? { type: 'output_text', text: content, annotations: [], logprobs: [] }
        : { type: 'input_text', text: content };
    items.push({ id: `msg_${id}`, type: 'message', status, role, content: [part] });
  }
  for (const [index, { id: callId, name, arguments: args }] of toolCalls.entries()) {
    items.push({ id: `fc_${id}_${index}`, type: 'function_call', status, call_id: callId, name, arguments: args });
  }
  return items as Item[];
}
