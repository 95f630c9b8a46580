import type { ChatMessage } from '../../chat/types.ts';
import { unsupported } from './unsupported.ts';

/** A call of a tool in a conversation, as the internal form has it: `arguments` is the JSON text of an object. */
export interface MessageCall {
  readonly id: string;
  readonly name: string;
  readonly arguments: string;
}

/** A turn that may call tools, or be the result of a call. */
export interface ToolMessage extends ChatMessage {
  toolCalls?: readonly MessageCall[];
  /** In a `tool` turn: the call this is the result of. */
  toolCallId?: string;
}

/** No template is given calls yet: a conversation shown without them would be another one. */
export function refuseToolMessages(messages: readonly ToolMessage[], path: string): readonly ChatMessage[] {
  if (messages.some(({ toolCalls, toolCallId }) => toolCalls !== undefined || toolCallId !== undefined)) {
    throw unsupported(path, 'tool calling');
  }
  return messages;
}
