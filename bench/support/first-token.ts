import type { GenerateOptions, Model } from 'ruvllm';

/** Token ids that start like no other list of this process. */
export function createTokenSource(vocabSize: number, seed = 1): (count: number) => number[] {
  let salt = seed;
  return (count) => {
    const offset = salt++ * 104729;
    return Array.from({ length: count }, (_, i) => 300 + ((i * 7919 + offset) % (vocabSize - 400)));
  };
}

/** Milliseconds from the call to the first token, and the cached tokens of the prompt. */
export async function timeFirstToken(
  model: Model,
  prompt: readonly number[],
  options: GenerateOptions = {},
): Promise<{ ms: number; cachedTokens: number }> {
  const start = performance.now();
  let ms = NaN;
  for await (const chunk of model.generateStream(prompt, {
    temperature: 0,
    maxTokens: 1,
    ignoreEos: true,
    ...options,
  })) {
    if (chunk.tokenIds.length > 0) ms = performance.now() - start;
    if (chunk.finishReason !== null) return { ms, cachedTokens: chunk.usage.cachedTokens };
  }
  throw new Error('the stream ended without a summary');
}
