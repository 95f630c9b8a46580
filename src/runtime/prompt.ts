import type { ChatMessage, ChatTemplate } from '../chat/types.ts';
import { RuvLLMError } from '../core/errors.ts';
import type { Tokenizer } from '../tokenizers/types.ts';

/** Plain text, a conversation, or token ids that are used as they are. */
export type Prompt = string | readonly ChatMessage[] | readonly number[];

export interface PromptContext {
  readonly tokenizer: Tokenizer;
  readonly chatTemplate: ChatTemplate;
}

/** Turns a prompt into the ids the model reads; `empty_prompt` when there is nothing to read. */
export function encodePrompt(
  prompt: Prompt,
  { tokenizer, chatTemplate }: PromptContext,
  { parseSpecial }: { parseSpecial: boolean },
): readonly number[] {
  const ids = encodeByKind(prompt, tokenizer, chatTemplate, parseSpecial);
  if (ids.length === 0) throw new RuvLLMError('empty_prompt', 'the prompt is empty');
  return ids;
}

/** The ids of more of a conversation that has `knownIds` already; `empty_prompt` when that is nothing. */
export function encodeContinuation(
  prompt: string | readonly number[],
  knownIds: ArrayLike<number>,
  context: PromptContext,
  { parseSpecial }: { parseSpecial: boolean },
): readonly number[] {
  if (isChat(prompt)) {
    throw new RuvLLMError(
      'invalid_option',
      'a session takes text or token ids; messages go to generate with { session }',
    );
  }
  if (knownIds.length === 0 || typeof prompt !== 'string') return encodePrompt(prompt, context, { parseSpecial });
  if (prompt === '') throw new RuvLLMError('empty_prompt', 'the prompt is empty');
  checkText(prompt, 'the prompt');
  const { tokenizer } = context;
  const isContinuation = !tokenizer.isControl(knownIds[knownIds.length - 1]!);
  return parseSpecial
    ? tokenizer.encodeTemplate(prompt, { isContinuation })
    : tokenizer.encode(prompt, { isContinuation });
}

/** Whether the answer is a turn of its own, not the continuation of a text. */
export function isChat(prompt: Prompt): boolean {
  return typeof prompt !== 'string' && typeof prompt[0] === 'object';
}

function encodeByKind(
  prompt: Prompt,
  tokenizer: Tokenizer,
  chatTemplate: ChatTemplate,
  parseSpecial: boolean,
): readonly number[] {
  if (typeof prompt === 'string') {
    // BOS alone would make the model talk about nothing; whoever wants that gives token ids.
    if (prompt === '') return [];
    checkText(prompt, 'the prompt');
    // Not `addSpecial`: where the file asks for EOS after text, the model would continue a text that has ended.
    return withBos(parseSpecial ? tokenizer.encodeTemplate(prompt) : tokenizer.encode(prompt), tokenizer);
  }
  if (!Array.isArray(prompt)) {
    throw new RuvLLMError('invalid_option', 'a prompt is a string, a list of messages or a list of token ids');
  }
  if (prompt.length === 0) return [];
  if (prompt.every((item) => typeof item === 'number')) return [...(prompt as readonly number[])];
  return encodeChat(prompt as readonly ChatMessage[], tokenizer, chatTemplate);
}

function encodeChat(messages: readonly ChatMessage[], tokenizer: Tokenizer, chatTemplate: ChatTemplate): number[] {
  messages.forEach((message, index) => {
    if (typeof message !== 'object' || message === null || typeof message.content !== 'string') {
      throw new RuvLLMError('invalid_option', `messages[${index}] must have a role and a content of text`);
    }
    checkText(message.content, `messages[${index}]`);
  });
  const { text, guard } = chatTemplate.render(messages);
  return withBos(tokenizer.encodeTemplate(text, { guard }), tokenizer);
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
