import type { ToolChoice } from '../chat/tools/types.ts';
import type { GenerateOptions } from '../runtime/generate-options.ts';
import type { FinishReason, Timings, Usage } from '../runtime/generation-types.ts';
import type { Prompt } from '../runtime/prompt.ts';
import type { SampledToken } from '../sampling/types.ts';
import type { FieldNames } from './field-names.ts';

/** What an answer must look like. */
export type OutputConstraint =
  | { readonly kind: 'json_object' }
  | { readonly kind: 'json_schema'; readonly name: string; readonly schema: object; readonly isStrict: boolean }
  | { readonly kind: 'grammar'; readonly grammar: string }
  | { readonly kind: 'regex'; readonly pattern: string };

/** A function the model may call. */
export interface ToolSpec {
  readonly name: string;
  readonly description: string | null;
  /** JSON Schema of the arguments; null: there are none. */
  readonly parameters: object | null;
  readonly isStrict: boolean;
}

export type { ToolChoice };

/** One request to generate, in the form every wire format is read into. */
export interface GenerateJob {
  /** As the client named it. */
  readonly model: string;
  /** One for a chat; completions may have several. */
  readonly prompts: readonly Prompt[];
  /** Answers for each prompt. */
  readonly numChoices: number;
  /** The caller's part is added by the service: signal and tenant. */
  readonly options: Omit<GenerateOptions, 'signal' | 'tenant'>;
  readonly constraint: OutputConstraint | null;
  readonly tools: readonly ToolSpec[];
  readonly toolChoice: ToolChoice;
  readonly canCallInParallel: boolean;
  /** What the request calls its options, for failures. */
  readonly fieldNames?: FieldNames;
}

/** A job that only says what to continue; formats fill in what they were asked for. */
export const PLAIN_JOB = {
  numChoices: 1,
  constraint: null,
  tools: [],
  toolChoice: 'auto',
  canCallInParallel: true,
} as const satisfies Partial<GenerateJob>;

export interface TextEvent {
  readonly type: 'text';
  readonly choice: number;
  readonly text: string;
  /** One entry a token where they were asked for, else null. */
  readonly logprobs: readonly SampledToken[] | null;
}

/** A piece of a tool call; its first piece has the id and the name. */
export interface ToolCallEvent {
  readonly type: 'tool_call';
  readonly choice: number;
  /** Which call of this answer. */
  readonly call: number;
  readonly id: string | null;
  readonly name: string | null;
  readonly arguments: string;
}

/** What the model thinks before it answers. */
export interface ReasoningEvent {
  readonly type: 'reasoning';
  readonly choice: number;
  readonly text: string;
}

export interface FinishedEvent {
  readonly type: 'finished';
  readonly choice: number;
  readonly finishReason: FinishReason;
  readonly usage: Usage;
  readonly timings: Timings;
  readonly seed: number;
  readonly stopString: string | null;
}

/** What a job says while it runs; each choice ends with `finished`. */
export type JobEvent = TextEvent | ReasoningEvent | ToolCallEvent | FinishedEvent;

/** Usage of all answers together. */
export interface JobUsage {
  readonly promptTokens: number;
  readonly cachedTokens: number;
  readonly completionTokens: number;
  readonly reasoningTokens: number;
}

/** Adds up answers: a prompt counts once, however many answers it has. */
export function addUsage(finished: readonly FinishedEvent[], numChoices: number): JobUsage {
  let [promptTokens, cachedTokens, completionTokens, reasoningTokens] = [0, 0, 0, 0];
  for (const { choice, usage } of finished) {
    completionTokens += usage.completionTokens;
    reasoningTokens += usage.reasoningTokens;
    if (choice % numChoices !== 0) continue;
    promptTokens += usage.promptTokens;
    cachedTokens += usage.cachedTokens;
  }
  return { promptTokens, cachedTokens, completionTokens, reasoningTokens };
}
