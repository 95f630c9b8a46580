import type { ChatMessage, ChatTemplate } from '../chat/types.ts';
import { RuvLLMError } from '../core/errors.ts';
import type { Tokenizer } from '../tokenizers/types.ts';
import { expandImages, type ImagePrompt, markImages, spellImages } from './prompt-images.ts';
import { encodeFillIn, type ResolvedFillIn } from './fill-in.ts';
import { reasoningVariables } from './answers/reasoning-variables.ts';
import {
  NO_CHAT_OPTIONS,
  requireNoChatOptions,
  type ResolvedChatOptions,
  type ToolDefinition,
} from './chat-options.ts';

/** A message whose role TypeScript may have widened to `string`, as in a list that is declared before the call. */
export interface PromptMessage extends Omit<ChatMessage, 'role'> {
  role: ChatMessage['role'] | (string & {});
}

/** Plain text, a conversation, or token ids. */
export type Prompt = string | readonly PromptMessage[] | readonly number[];

export interface PromptContext {
  readonly tokenizer: Tokenizer;
  readonly chatTemplate: ChatTemplate;
  /** How images stand in a prompt; null or absent: the model has no projector. */
  readonly images?: ImagePrompt | null;
}

/** How a prompt is encoded; chat options apply only to messages. */
export interface PromptOptions extends Partial<ResolvedChatOptions> {
  readonly parseSpecial: boolean;
  /** The text after the gap that the answer fills; only for a text. */
  readonly fill?: ResolvedFillIn | null;
  /** Instead of the context's, which a thread does not have. */
  readonly images?: ImagePrompt | null;
}

export interface PreparedPrompt {
  readonly ids: readonly number[];
  /** The end of the rendered chat template; null: no template was used, and the answer continues the text. */
  readonly tail: string | null;
}

/** Longer than any model family's mark for the start of reasoning, which is searched at the prompt's end. */
const TAIL_CHARS = 256;

/** Encodes a prompt; `empty_prompt` if it has no tokens. */
export function preparePrompt(prompt: Prompt, context: PromptContext, options: PromptOptions): PreparedPrompt {
  const chat = { ...NO_CHAT_OPTIONS, ...options };
  const prepared = encodeByKind(prompt, context, chat);
  if (prepared.tail === null) requireNoChatOptions(chat);
  if (prepared.ids.length === 0) throw new RuvLLMError('empty_prompt', 'the prompt is empty');
  return prepared;
}

export function encodePrompt(prompt: Prompt, context: PromptContext, options: PromptOptions): readonly number[] {
  return preparePrompt(prompt, context, options).ids;
}

/** Encodes a text that continues a conversation; `empty_prompt` if it is empty. */
export function encodeContinuation(
  text: string,
  tokenizer: Tokenizer,
  { parseSpecial, isContinuation }: { parseSpecial: boolean; isContinuation: boolean },
): readonly number[] {
  if (text === '') throw new RuvLLMError('empty_prompt', 'the prompt is empty');
  checkText(text, 'the prompt');
  return parseSpecial ? tokenizer.encodeTemplate(text, { isContinuation }) : tokenizer.encode(text, { isContinuation });
}

/** Whether the prompt is a list of messages, so that the answer is a turn. */
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
  if (options.fill != null) {
    if (typeof prompt !== 'string') {
      throw new RuvLLMError('invalid_option', 'option "fill" requires a text as the prompt', {
        data: { option: 'fill' },
      });
    }
    const { suffix, start, files } = options.fill;
    for (const text of [prompt, suffix, start, ...files.flatMap((file) => [file.name, file.text])]) {
      checkText(text, 'the text around the gap');
    }
    return plain(encodeFillIn(prompt, options.fill, tokenizer));
  }
  if (typeof prompt === 'string') {
    // BOS alone is no prompt; callers that want that pass token ids.
    if (prompt === '') return plain([]);
    checkText(prompt, 'the prompt');
    // Not `addSpecial`: some files want EOS after text, and the model would continue a text that has ended.
    const ids = options.parseSpecial ? tokenizer.encodeTemplate(prompt) : tokenizer.encode(prompt);
    return plain(withBos(ids, tokenizer));
  }
  if (!Array.isArray(prompt)) {
    throw new RuvLLMError('invalid_option', 'a prompt must be a string, a list of messages or a list of token ids');
  }
  if (prompt.length === 0) return plain([]);
  if (prompt.every((item) => typeof item === 'number')) return plain([...(prompt as readonly number[])]);
  return encodeChat(prompt as readonly ChatMessage[], context, options);
}

function encodeChat(
  given: readonly ChatMessage[],
  { tokenizer, chatTemplate, images: ownImages = null }: PromptContext,
  options: PromptOptions & ResolvedChatOptions,
): PreparedPrompt {
  const { tools, reasoning, templateVariables, continueFinalMessage, images = ownImages } = options;
  given.forEach((message, index) => {
    if (typeof message !== 'object' || message === null || typeof message.content !== 'string') {
      throw new RuvLLMError('invalid_option', `messages[${index}] must have a role and a string as content`);
    }
    checkText(message.content, `messages[${index}]`);
  });
  const { messages, numImages, mark } = markImages(given, images);
  const last = messages.at(-1)!;
  if (continueFinalMessage && (last.role !== 'assistant' || last.toolCalls !== undefined)) {
    const message = 'option "continueFinalMessage" requires a last message of the assistant without tool calls';
    throw new RuvLLMError('invalid_option', message, { data: { option: 'continueFinalMessage' } });
  }
  const { text: rendered, guard } = chatTemplate.render(continueFinalMessage ? messages.slice(0, -1) : messages, {
    ...(continueFinalMessage ? { answerStart: last.content } : {}),
    tools: tools.map(showTool),
    variables: { ...reasoningVariables(chatTemplate, reasoning), ...templateVariables },
  });
  const text = numImages === 0 ? rendered : spellImages(rendered, mark, images!);
  const encoded = withBos(tokenizer.encodeTemplate(text, { guard }), tokenizer);
  const ids = numImages === 0 ? encoded : expandImages(encoded, numImages, images!, tokenizer);
  return { ids, tail: text.trimEnd().slice(-TAIL_CHARS) };
}

/** Without `strict`, because templates print tools as they are. */
function showTool({ type, function: { strict: _, ...shown } }: ToolDefinition): object {
  return { type, function: shown };
}

/** Many templates contain BOS; a second one shifts every position and costs quality. */
function withBos(ids: number[], { addsBos, bosId }: Tokenizer): number[] {
  return addsBos && bosId !== null && ids[0] !== bosId ? [bosId, ...ids] : ids;
}

function checkText(text: string, what: string): void {
  const index = text.search(/\p{Surrogate}/u);
  if (index >= 0) {
    throw new RuvLLMError('invalid_text', `${what} has a lone surrogate at index ${index}`, { data: { index } });
  }
}
