import type { AnswerUsage } from '../../../runtime/requests/answer-chunks.ts';

/** `usage` in OpenAI's format. */
export function toWireUsage(usage: AnswerUsage) {
  const { promptTokens, cachedTokens, completionTokens, reasoningTokens } = usage;
  return {
    prompt_tokens: promptTokens,
    completion_tokens: completionTokens,
    total_tokens: promptTokens + completionTokens,
    prompt_tokens_details: { cached_tokens: cachedTokens, audio_tokens: 0 },
    completion_tokens_details: {
      reasoning_tokens: reasoningTokens,
      audio_tokens: 0,
      accepted_prediction_tokens: usage.acceptedDraftTokens,
      rejected_prediction_tokens: usage.rejectedDraftTokens,
      // Not in OpenAI's API: tokens of attempts that reflection discarded.
      ...(usage.discardedTokens === null ? {} : { discarded_tokens: usage.discardedTokens }),
    },
  };
}
