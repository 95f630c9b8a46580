import type { ChatMessage, ChatTemplate } from '../chat/types.ts';
import { RuvLLMError } from '../core/errors.ts';
import type { Tokenizer } from '../tokenizers/types.ts';
import { reasoningVariables } from './answers/reasoning-variables.ts';
import {
  NO_CHAT_OPTIONS,
  requireNoChatOptions,
  type ResolvedChatOptions,
  type ToolDefinition,
} from './chat-options.ts';

/** Plain text, a conversation, or token ids that are used as they are. */
export type Prompt = string | readonly ChatMessage[] | readonly number[];

export interface PromptContext {
  readonly tokenizer: Tokenizer;
  readonly chatTemplate: ChatTemplate;
}

/** How a prompt is read; the chat's part only where it is one. */
export interface PromptOptions extends Partial<ResolvedChatOptions> {
  readonly parseSpecial: boolean;
}

/** A prompt as the model reads it. */
export interface PreparedPrompt {
  readonly ids: readonly number[];
  /** How the text of the chat template ends; null: it was not asked, and the answer is no turn of its own. */
  readonly tail: string | null;
}

/** More than any family's mark that thinking has begun: that is what is looked for at a prompt's end. */
const TAIL_CHARS = 256;

/** Turns a prompt into the ids the model reads; `empty_prompt` when there is nothing to read. */
export function preparePrompt(prompt: Prompt, context: PromptContext, options: PromptOptions): PreparedPrompt {
  const chat = { ...NO_CHAT_OPTIONS, ...options };
  const prepared = encodeByKind(prompt, context, chat);
  if (prepared.tail === null) requireNoChatOptions(chat);
  if (prepared.ids.length === 0) throw new RuvLLMError('empty_prompt', 'the prompt is empty');
  return prepared;
}

/** The ids alone. */
export function encodePrompt(prompt: Prompt, context: PromptContext, options: PromptOptions): readonly number[] {
  return preparePrompt(prompt, context, options).ids;
}

/** The ids of a text that goes on where others have ended; `empty_prompt` when it is empty. */
export function encodeContinuation(
  text: string,
  tokenizer: Tokenizer,
  { parseSpecial, isContinuation }: { parseSpecial: boolean; isContinuation: boolean },
): readonly number[] {
  if (text === '') throw new RuvLLMError('empty_prompt', 'the prompt is empty');
  checkText(text, 'the prompt');
  return parseSpecial ? tokenizer.encodeTemplate(text, { isContinuation }) : tokenizer.encode(text, { isContinuation });
}

/** Whether the answer is a turn of its own, not the continuation of a text. */
export function isChat(prompt: Prompt): boolean {
  return Array.isArray(prompt) && typeof prompt[0] === 'object';
}

function encodeByKind(
  prompt: Prompt,
  context: PromptContext,
  options: PromptOptions & ResolvedChatOptions,
): PreparedPrompt {
  const { tokenizer } = context;
  const plain = (ids: readonly number[]): PreparedPrompt => ({ ids, tail: null });
  if (typeof prompt === 'string') {
    // BOS alone would make the model talk about nothing; whoever wants that gives token ids.
    if (prompt === '') return plain([]);
    checkText(prompt, 'the prompt');
    // Not `addSpecial`: where the file asks for EOS after text, the model would continue a text that has ended.
    const ids = options.parseSpecial ? tokenizer.encodeTemplate(prompt) : tokenizer.encode(prompt);
    return plain(withBos(ids, tokenizer));
  }
  if (!Array.isArray(prompt)) {
    throw new RuvLLMError('invalid_option', 'a prompt is a string, a list of messages or a list of token ids');
  }
  if (prompt.length === 0) return plain([]);
  if (prompt.every((item) => typeof item === 'number')) return plain([...(prompt as readonly number[])]);
  return encodeChat(prompt as readonly ChatMessage[], context, options);
}

function encodeChat(
  messages: readonly ChatMessage[],
  { tokenizer, chatTemplate }: PromptContext,
  { tools, reasoning, templateVariables }: ResolvedChatOptions,
): PreparedPrompt {
  messages.forEach((message, index) => {
    if (typeof message !== 'object' || message === null || typeof message.content !== 'string') {
      throw new RuvLLMError('invalid_option', `messages[${index}] must have a role and a content of text`);
    }
    checkText(message.content, `messages[${index}]`);
  });
  const { text, guard } = chatTemplate.render(messages, {
    tools: tools.map(showTool),
    variables: { ...reasoningVariables(chatTemplate, reasoning), ...templateVariables },
  });
  const ids = withBos(tokenizer.encodeTemplate(text, { guard }), tokenizer);
  return { ids, tail: text.trimEnd().slice(-TAIL_CHARS) };
}

/** Without what is ours to enforce: templates print tools as they are. */
function showTool({ type, function: { strict: _, ...shown } }: ToolDefinition): object {
  return { type, function: shown };
}

/** Templates often spell BOS themselves; a second one shifts every position and costs quality. */
function withBos(ids: number[], { addsBos, bosId }: Tokenizer): number[] {
  return addsBos && bosId !== null && ids[0] !== bosId ? [bosId, ...ids] : ids;
}

function checkText(text: string, what: string): void {
  const index = text.search(/\p{Surrogate}/u);
  if (index >= 0) {
    throw new RuvLLMError('invalid_text', `${what} has half a surrogate pair at index ${index}`, { data: { index } });
  }
}
