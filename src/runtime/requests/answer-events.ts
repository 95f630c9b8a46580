import type { SampledToken } from '../../sampling/types.ts';
import type { FinishReason, Timings, Usage } from '../generation-types.ts';

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

/** What a request says while it runs; each choice ends with `finished`. */
export type AnswerEvent = TextEvent | ReasoningEvent | ToolCallEvent | FinishedEvent;

/** Usage of all answers together. */
export interface AnswerUsage {
  readonly promptTokens: number;
  readonly cachedTokens: number;
  readonly completionTokens: number;
  readonly reasoningTokens: number;
}

/** Adds up answers: a prompt counts once, however many answers it has. */
export function addUsage(finished: readonly FinishedEvent[], numChoices: number): AnswerUsage {
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
