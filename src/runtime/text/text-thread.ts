import { RuvLLMError } from '../../core/errors.ts';
import {
  isChat,
  preparePrompt,
  type PreparedPrompt,
  type Prompt,
  type PromptContext,
  type PromptMessage,
} from '../prompt.ts';
import { withoutImageData } from '../prompt-images.ts';
import type { PromptOptions } from '../prompt.ts';
import { runTextTask, type TextResult, type TextTask, weighTask } from './text-tasks.ts';

/** A thread for long tasks that has read the same model file. */
export interface TextThread {
  /** The result, or the task's own error; null: the thread is unavailable. Tenants take turns. */
  run(task: TextTask, signal: AbortSignal | null, tenant?: string): Promise<TextResult | null>;
  /** Ends the thread; waiting tasks fail with `not_loaded`. */
  dispose(): Promise<void>;
}

/** Who asks for a task. Without a tenant: the program itself. */
export interface TextCaller {
  readonly signal: AbortSignal | null;
  readonly tenant?: string;
}

export interface TextContext extends PromptContext {
  /** null: all tasks run in the caller's thread. */
  readonly textThread: TextThread | null;
}

/** Heavier tasks go to the thread. Measured: a task of this weight takes 5 ms at worst, 0.3 ms for words. */
export const MAX_WEIGHT_HERE = 4096;

/** Runs a short task here and a long one in the thread, because it would block other requests. */
export async function doTextTask(
  context: TextContext,
  task: TextTask,
  { signal, tenant }: TextCaller,
): Promise<TextResult> {
  const { textThread } = context;
  const isLong = textThread !== null && weighTask(task, MAX_WEIGHT_HERE) > MAX_WEIGHT_HERE;
  return (isLong ? await textThread.run(task, signal, tenant) : null) ?? runTextTask(task, context);
}

/** `preparePrompt`, with long prompts in the thread. */
export async function preparePromptAside(
  context: TextContext,
  prompt: Prompt,
  options: PromptOptions,
  caller: TextCaller,
): Promise<PreparedPrompt> {
  if (typeof prompt !== 'string' && !isChat(prompt)) return preparePrompt(prompt, context, options);
  const { images = null } = context;
  const { parseSpecial, fill, tools, reasoning, templateVariables, continueFinalMessage } = options;
  const { lists, text } = await doTextTask(
    context,
    {
      kind: 'prompt',
      prompt: typeof prompt === 'string' ? prompt : withoutImageData(prompt as readonly PromptMessage[]),
      options: {
        parseSpecial,
        ...(images === null ? {} : { images }),
        ...(fill == null ? {} : { fill }),
        ...(tools === undefined ? {} : { tools }),
        ...(reasoning === undefined ? {} : { reasoning }),
        ...(templateVariables === undefined ? {} : { templateVariables }),
        ...(continueFinalMessage === undefined ? {} : { continueFinalMessage }),
      },
    },
    caller,
  );
  return { ids: lists[0]!, tail: text };
}

/** Encodes a turn after the tokens `knownIds`; `empty_prompt` if it is empty. */
export async function encodeTurn(
  context: TextContext,
  prompt: string | readonly number[],
  knownIds: ArrayLike<number>,
  { parseSpecial, ...caller }: TextCaller & { readonly parseSpecial: boolean },
): Promise<readonly number[]> {
  if (isChat(prompt)) {
    throw new RuvLLMError(
      'invalid_option',
      'a session requires a text or token ids; pass messages to generate with { session }',
    );
  }
  if (knownIds.length === 0 || typeof prompt !== 'string') {
    return (await preparePromptAside(context, prompt, { parseSpecial }, caller)).ids;
  }
  const isContinuation = !context.tokenizer.isControl(knownIds[knownIds.length - 1]!);
  const options = { parseSpecial, isContinuation };
  return (await doTextTask(context, { kind: 'continuation', text: prompt, options }, caller)).lists[0]!;
}
