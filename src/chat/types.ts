import type { ToolDialect } from './tools/dialect.ts';
import type { ReasoningFormat } from './tools/reasoning.ts';

/** A tool call of the assistant. */
export interface ToolCall {
  /** Refers to the call from its result; unique within the conversation. */
  id: string;
  name: string;
  /** The exact JSON text of an object; empty counts as `{}`. */
  arguments: string;
}

/**
 * One turn of a conversation; every API is converted to this form. Content is one string: `joinContent` joins parts,
 * and null becomes empty.
 */
export interface ChatMessage {
  role: 'system' | 'developer' | 'user' | 'assistant' | 'tool';
  content: string;
  /** The name of the speaker, or of the tool if the role is `tool`. */
  name?: string;
  /** The assistant's reasoning before the answer; templates decide whether to show it again. */
  reasoning?: string;
  /** Images of the turn; templates get only its text. */
  images?: readonly MessageImage[];
  /** Calls of an assistant turn, in order. */
  toolCalls?: readonly ToolCall[];
  /** In a `tool` turn: the id of the call that it answers. */
  toolCallId?: string;
}

/** An image in a message, before the character at `offset` of its content. */
export interface MessageImage {
  readonly offset: number;
  /** A PNG or JPEG file. */
  readonly data: Uint8Array;
}

/** A conversation as text. */
export interface RenderedChat {
  /** The model's input. */
  text: string;
  /** The character inserted into control-token spellings in users' text; see `Tokenizer.encodeTemplate`. */
  guard: string;
}

/** Turns messages into the text a model reads. */
export interface ChatTemplate {
  /** `file`, `custom` for one that replaces the file's, or the name of a built-in. */
  readonly origin: string;
  /** How this template writes tools, calls and reasoning; determined on first use. */
  readonly dialect: ToolDialect;
  /** How its models mark their reasoning, from the source alone; null: not at all. */
  readonly reasoning: ReasoningFormat | null;
  /** Whether the source mentions a variable with this name. */
  reads(name: string): boolean;
  render(messages: readonly ChatMessage[], options?: RenderOptions): RenderedChat;
}

/** Options of `ChatTemplate.render`. */
export interface RenderOptions {
  /** Appends the assistant's header, so that the model answers. Default true. */
  addGenerationPrompt?: boolean;
  /** The beginning of the assistant's answer, after its header. Default: none. */
  answerStart?: string;
  /** OpenAI-style tool definitions, passed to the template as `tools` or described in the system turn. */
  tools?: readonly object[];
  /** Further variables that some templates read (`enable_thinking`, …). */
  variables?: Readonly<Record<string, unknown>>;
}
