import type { LastChunk } from '../../runtime/requests/answer-chunks.ts';

/** The field `reflection` of an answer: its attempts and why they ended. Absent if reflection was off. */
export function writeReflectionBlock({ reflection }: Pick<LastChunk, 'reflection'>): { readonly reflection?: object } {
  if (reflection === undefined) return {};
  const { ending, chosen, error, attempts } = reflection;
  return {
    reflection: {
      ending,
      chosen,
      error,
      attempts: attempts.map(({ error: problem, confidence, promptTokens, completionTokens }) => ({
        error: problem,
        confidence,
        prompt_tokens: promptTokens,
        completion_tokens: completionTokens,
      })),
    },
  };
}
