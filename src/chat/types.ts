/** One turn of a conversation, in the form every API is converted to. */
export interface ChatMessage {
  role: 'system' | 'developer' | 'user' | 'assistant' | 'tool';
  content: string;
  name?: string;
}

export interface RenderedChat {
  /** What the model is to read. */
  text: string;
  /** The character that was put inside control-token spellings found in users' text; see `Tokenizer.encodeTemplate`. */
  guard: string;
}

export interface ChatTemplate {
  /** Where it came from: 'file' or the name of a built-in. */
  readonly origin: string;
  render(messages: readonly ChatMessage[], options?: RenderOptions): RenderedChat;
}

export interface RenderOptions {
  /** Ends with the assistant's header, so that the model answers. Default true. */
  addGenerationPrompt?: boolean;
  /** OpenAI-style tool definitions handed to the template as `tools`. */
  tools?: readonly object[];
  /** Further variables some templates read (`enable_thinking`, …). */
  variables?: Readonly<Record<string, unknown>>;
}
