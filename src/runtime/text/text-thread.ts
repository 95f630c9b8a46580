import { RuvLLMError } from '../../core/errors.ts';
import { isChat, preparePrompt, type PreparedPrompt, type Prompt, type PromptContext } from '../prompt.ts';
import type { PromptOptions } from '../prompt.ts';
import { runTextTask, type TextResult, type TextTask, weighTask } from './text-tasks.ts';

/** A thread that has read the same model file, and does the long tasks. */
export interface TextThread {
  /** The result, or the error the task has in any thread; null: it cannot be done there, and nothing is wrong with it. */
  run(task: TextTask, signal: AbortSignal | null): Promise<TextResult | null>;
  /** Ends it; tasks that wait fail with `not_loaded`. */
  dispose(): Promise<void>;
}

export interface TextContext extends PromptContext {
  /** null: everything is done in the caller's thread. */
  readonly textThread: TextThread | null;
}

/** Heavier tasks go aside. Measured: what weighs this much takes 5 ms at worst, and 0.3 when it is words. */
export const MAX_WEIGHT_HERE = 4096;

/** Does a task here when it is short, else aside: a long one would hold up everyone this thread serves. */
export async function doTextTask(
  context: TextContext,
  task: TextTask,
  signal: AbortSignal | null,
): Promise<TextResult> {
  const { textThread } = context;
  const isLong = textThread !== null && weighTask(task, MAX_WEIGHT_HERE) > MAX_WEIGHT_HERE;
  return (isLong ? await textThread.run(task, signal) : null) ?? runTextTask(task, context);
}

/** `preparePrompt`, with long prompts aside. */
export async function preparePromptAside(
  context: TextContext,
  prompt: Prompt,
  options: PromptOptions,
  signal: AbortSignal | null,
): Promise<PreparedPrompt> {
  if (typeof prompt !== 'string' && !isChat(prompt)) return preparePrompt(prompt, context, options);
  const { parseSpecial, tools, reasoning, templateVariables } = options;
  const { lists, text } = await doTextTask(
    context,
    {
      kind: 'prompt',
      prompt: prompt as Exclude<Prompt, readonly number[]>,
      options: {
        parseSpecial,
        ...(tools === undefined ? {} : { tools }),
        ...(reasoning === undefined ? {} : { reasoning }),
        ...(templateVariables === undefined ? {} : { templateVariables }),
      },
    },
    signal,
  );
  return { ids: lists[0]!, tail: text };
}

/** The ids of more of a conversation that has `knownIds` already; `empty_prompt` when that is nothing. */
export async function encodeTurn(
  context: TextContext,
  prompt: string | readonly number[],
  knownIds: ArrayLike<number>,
  { parseSpecial, signal }: { parseSpecial: boolean; signal: AbortSignal | null },
): Promise<readonly number[]> {
  if (isChat(prompt)) {
    throw new RuvLLMError(
      'invalid_option',
      'a session takes text or token ids; messages go to generate with { session }',
    );
  }
  if (knownIds.length === 0 || typeof prompt !== 'string') {
    return (await preparePromptAside(context, prompt, { parseSpecial }, signal)).ids;
  }
  const isContinuation = !context.tokenizer.isControl(knownIds[knownIds.length - 1]!);
  const options = { parseSpecial, isContinuation };
  return (await doTextTask(context, { kind: 'continuation', text: prompt, options }, signal)).lists[0]!;
}
