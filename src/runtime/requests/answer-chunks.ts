import type { GenerateChunk, GenerateSummary } from '../generation-types.ts';

/** A piece of one answer of a request, from the engine to the wire. The last piece of each answer has a finish reason. */
export type AnswerChunk = GenerateChunk & { readonly choice: number };

/** The last piece of an answer. */
export type LastChunk = GenerateSummary & { readonly choice: number };

/** Whether a piece has text, or tokens whose log-probabilities were requested. */
export const hasText = ({ text, textLogprobs }: AnswerChunk): boolean => text !== '' || (textLogprobs?.length ?? 0) > 0;

/** Usage of all answers together. */
export interface AnswerUsage {
  readonly promptTokens: number;
  readonly cachedTokens: number;
  readonly completionTokens: number;
  readonly reasoningTokens: number;
  readonly acceptedDraftTokens: number;
  readonly rejectedDraftTokens: number;
  /** In attempts that are not the answer; null: reflection was off. */
  readonly discardedTokens: number | null;
}

/** Adds up answers: a prompt counts once, however many answers it has. */
export function addUsage(lastChunks: readonly LastChunk[], numChoices: number): AnswerUsage {
  let [promptTokens, cachedTokens, completionTokens, reasoningTokens] = [0, 0, 0, 0];
  let [acceptedDraftTokens, rejectedDraftTokens] = [0, 0];
  let discardedTokens: number | null = null;
  for (const { choice, usage } of lastChunks) {
    completionTokens += usage.completionTokens;
    reasoningTokens += usage.reasoningTokens;
    acceptedDraftTokens += usage.acceptedDraftTokens;
    rejectedDraftTokens += usage.rejectedDraftTokens;
    if (usage.discardedTokens !== undefined) discardedTokens = (discardedTokens ?? 0) + usage.discardedTokens;
    if (choice % numChoices !== 0) continue;
    promptTokens += usage.promptTokens;
    cachedTokens += usage.cachedTokens;
  }
  return { promptTokens, cachedTokens, completionTokens, reasoningTokens, acceptedDraftTokens, rejectedDraftTokens, discardedTokens }; // prettier-ignore
}
