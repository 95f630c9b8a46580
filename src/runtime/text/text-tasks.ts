import { lengthOfFillIn } from '../fill-in.ts';
import { encodeContinuation, preparePrompt, type Prompt, type PromptContext, type PromptOptions } from '../prompt.ts';

/** A tokenizer task as plain data, for any thread that has read the same model file. */
export type TextTask =
  | { readonly kind: 'prompt'; readonly prompt: Exclude<Prompt, readonly number[]>; readonly options: PromptOptions }
  | {
      readonly kind: 'continuation';
      readonly text: string;
      readonly options: { readonly parseSpecial: boolean; readonly isContinuation: boolean };
    }
  | { readonly kind: 'encode'; readonly texts: readonly string[]; readonly options: { readonly addSpecial: boolean } }
  | { readonly kind: 'decode'; readonly ids: ArrayLike<number>; readonly options: { readonly skipSpecial: boolean } };

type TaskKind = TextTask['kind'];
type TaskOf<K extends TaskKind> = Extract<TextTask, { kind: K }>;

export interface TextResult {
  /** One list of ids per text. */
  readonly lists: readonly (readonly number[])[];
  /** The decoded text, or the end of a rendered conversation. */
  readonly text: string | null;
}

/** About a microsecond each: a character outside words, or a token to decode. Words take a tenth. */
const MESSAGE_WEIGHT = 64;
const VALUE_WEIGHT = 8;
const TEXT_WEIGHT = 16;

interface TaskRecord<K extends TaskKind> {
  /** Estimated microseconds; counting stops above `limit`. */
  weigh(task: TaskOf<K>, limit: number): number;
  run(task: TaskOf<K>, context: PromptContext): TextResult;
}

const TASKS: { readonly [K in TaskKind]: TaskRecord<K> } = {
  prompt: {
    weigh: ({ prompt, options: { fill, tools = [], templateVariables = {} } }, limit) =>
      typeof prompt === 'string'
        ? prompt.length + (fill == null ? 0 : lengthOfFillIn(fill))
        : prompt.length * MESSAGE_WEIGHT + weighJson([prompt, tools, templateVariables], limit),
    run({ prompt, options }, context) {
      const { ids, tail } = preparePrompt(prompt, context, options);
      return { lists: [ids], text: tail };
    },
  },
  continuation: {
    weigh: ({ text }) => text.length,
    run: ({ text, options }, { tokenizer }) => ({ lists: [encodeContinuation(text, tokenizer, options)], text: null }),
  },
  encode: {
    weigh: ({ texts }) => texts.reduce((sum, { length }) => sum + length + TEXT_WEIGHT, 0),
    run: ({ texts, options }, { tokenizer }) => ({
      lists: texts.map((text) => tokenizer.encode(text, options)),
      text: null,
    }),
  },
  decode: {
    weigh: ({ ids }) => ids.length,
    run: ({ ids, options }, { tokenizer }) => ({ lists: [], text: tokenizer.decode(ids, options) }),
  },
};

/** Estimated microseconds of a task at worst; counting stops above `limit`. */
export function weighTask(task: TextTask, limit: number): number {
  return (TASKS[task.kind] as TaskRecord<TaskKind>).weigh(task, limit);
}

/** Runs a task in this thread. */
export function runTextTask(task: TextTask, context: PromptContext): TextResult {
  return (TASKS[task.kind] as TaskRecord<TaskKind>).run(task, context);
}

/** Characters and values of data of unchecked shape; its reader reports errors. */
function weighJson(root: unknown, limit: number): number {
  let weight = 0;
  const left: unknown[] = [root];
  while (left.length > 0 && weight <= limit) {
    const value = left.pop();
    weight += VALUE_WEIGHT;
    if (typeof value === 'string') weight += value.length;
    else if (Array.isArray(value)) {
      if (value.length * VALUE_WEIGHT > limit) return Infinity;
      for (const item of value) left.push(item);
    } else if (typeof value === 'object' && value !== null) {
      for (const key in value) {
        weight += key.length;
        left.push((value as Record<string, unknown>)[key]);
        if (weight > limit) break;
      }
    }
  }
  return weight;
}
