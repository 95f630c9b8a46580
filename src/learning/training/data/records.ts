import { z } from 'zod';
import { RuvLLMError } from '../../../core/errors.ts';
import { name, parseWith, text } from '../../../memory/schemas/primitives.ts';

const MAX_TEXT = 1 << 16;
const MAX_SCHEMA_CHARS = 1 << 14;

const messages = z
  .array(z.strictObject({ role: z.enum(['system', 'user', 'assistant']), content: text(MAX_TEXT) }))
  .min(1)
  .max(256);
const prompt = z.union([text(MAX_TEXT, 1), messages]);
const completion = text(MAX_TEXT, 1);
/** Where a line comes from, for its owner. */
const origin = { id: name.optional(), source: name.optional() };
const rating = {
  thumbs: z.enum(['up', 'down']).optional(),
  /** The right answer instead of the completion. */
  correction: completion.optional(),
  /** Negative weights make an answer less likely. */
  weight: z.number().min(-1).max(1).optional(),
};

const answered = z.strictObject({ prompt, completion, ...rating, ...origin });
const conversation = z.strictObject({
  messages: messages
    .min(2)
    .refine((turns) => turns.at(-1)!.role === 'assistant' && turns.at(-1)!.content !== '', 'must end with an answer'),
  ...rating,
  ...origin,
});
const preference = z
  .strictObject({ prompt, chosen: completion, rejected: completion, ...origin })
  .refine(({ chosen, rejected }) => chosen !== rejected, 'chosen and rejected are equal');
const task = z.strictObject({
  prompt,
  schema: z
    .record(z.string(), z.unknown())
    .refine((schema) => JSON.stringify(schema).length <= MAX_SCHEMA_CHARS, 'is too long'),
  /** The arguments of the right call. Without them any valid object would earn the reward. */
  expected: z
    .record(z.string(), z.unknown())
    .refine((value) => Object.keys(value).length > 0, 'is empty: any valid object would earn the reward'),
  ...origin,
});

export type PromptText = z.infer<typeof prompt>;

interface Line {
  /** From 1. */
  readonly line: number;
  readonly prompt: PromptText;
  readonly id?: string | undefined;
  readonly source?: string | undefined;
}
export interface AnsweredLine extends Line {
  readonly form: 'answer';
  readonly completion: string;
  readonly thumbs: 'up' | 'down' | null;
  readonly correction: string | null;
  readonly weight: number;
}
export interface PreferenceLine extends Line {
  readonly form: 'preference';
  readonly chosen: string;
  readonly rejected: string;
}
export interface TaskLine extends Line {
  readonly form: 'task';
  readonly schema: Readonly<Record<string, unknown>>;
  readonly expected: Readonly<Record<string, unknown>>;
}
/** A line of a data set in one of its forms. */
export type DataLine = AnsweredLine | PreferenceLine | TaskLine;

/** `{prompt, completion}`; `answer` is the older name of `completion`. */
function parseAnswered(value: object): Omit<AnsweredLine, 'line'> {
  const { answer, ...others } = value as { readonly answer?: unknown };
  const record = parseWith(answered, answer === undefined ? value : { completion: answer, ...others }, '');
  const { thumbs = null, correction = null, weight = 1 } = record;
  return { form: 'answer', ...record, thumbs, correction, weight };
}

function parseConversation(value: object): Omit<AnsweredLine, 'line'> {
  const {
    messages: turns,
    thumbs = null,
    correction = null,
    weight = 1,
    ...others
  } = parseWith(conversation, value, '');
  return {
    form: 'answer',
    ...others,
    prompt: turns.slice(0, -1),
    completion: turns.at(-1)!.content,
    thumbs,
    correction,
    weight,
  };
}

/** Checks a value of a line; the form follows from its keys. */
export function parseRecord(value: unknown, line: number): DataLine {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new RuvLLMError('invalid_option', 'not an object');
  }
  if ('messages' in value) return { ...parseConversation(value), line };
  if ('chosen' in value || 'rejected' in value) {
    return { form: 'preference', ...parseWith(preference, value, ''), line };
  }
  if ('schema' in value || 'expected' in value) return { form: 'task', ...parseWith(task, value, ''), line };
  return { ...parseAnswered(value), line };
}
