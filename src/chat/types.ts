import type { ToolDialect } from './tools/dialect.ts';
import type { ReasoningFormat } from './tools/reasoning.ts';

/** A call of a tool that the assistant made. */
export interface ToolCall {
  /** Names the call for its result; unique within the conversation. */
  id: string;
  name: string;
  /** The exact JSON text of an object; empty counts as `{}`. */
  arguments: string;
}

/**
 * One turn of a conversation, in the form every API is converted to. Content is one text: parts are joined
 * (`joinContent`) and null becomes empty at the border.
 */
export interface ChatMessage {
  role: 'system' | 'developer' | 'user' | 'assistant' | 'tool';
  content: string;
  /** Of the speaker; of the tool where the role is `tool`. */
  name?: string;
  /** What the assistant thought before it answered; templates decide whether it is shown again. */
  reasoning?: string;
  /** Calls of an assistant's turn, in order. */
  toolCalls?: readonly ToolCall[];
  /** In a `tool` turn: the call this is the result of. */
  toolCallId?: string;
}

/** A conversation as text. */
export interface RenderedChat {
  /** What the model is to read. */
  text: string;
  /** The character that was put inside control-token spellings found in users' text; see `Tokenizer.encodeTemplate`. */
  guard: string;
}

/** Turns messages into the text a model reads. */
export interface ChatTemplate {
  /** Where it came from: 'file' or the name of a built-in. */
  readonly origin: string;
  /** How this template writes tools, calls and reasoning; found out on first use. */
  readonly dialect: ToolDialect;
  /** How its models set their thinking apart, as the source shows without a look at the rest; null: they do not. */
  readonly reasoning: ReasoningFormat | null;
  /** Whether the source mentions a variable of this name. */
  reads(name: string): boolean;
  render(messages: readonly ChatMessage[], options?: RenderOptions): RenderedChat;
}

/** How a conversation is rendered; every field has a default. */
export interface RenderOptions {
  /** Ends with the assistant's header, so that the model answers. Default true. */
  addGenerationPrompt?: boolean;
  /** OpenAI-style tool definitions handed to the template as `tools`, or described in the system turn. */
  tools?: readonly object[];
  /** Further variables some templates read (`enable_thinking`, …). */
  variables?: Readonly<Record<string, unknown>>;
}
