import { loadModel } from 'ruvllm';
import { createTokenSource, timeFirstToken } from './first-token.ts';

/** Times of the first and second turn of a conversation with a hybrid model. */
export interface HybridReuse {
  readonly firstMs: number;
  readonly secondMs: number;
  readonly cachedTokens: number;
  readonly promptTokens: number;
  readonly isEqual: boolean;
}

const ANSWER_TOKENS = 32;
const QUESTION_TOKENS = 40;

/** A prompt, its answer, and a second question after both; the answer to that must be the one without a cache. */
export async function measureHybridReuse(path: string, promptTokens: number, numThreads: number): Promise<HybridReuse> {
  const options = { maxContext: promptTokens + 512, numThreads };
  const generation = { temperature: 0, ignoreEos: true, maxTokens: ANSWER_TOKENS };
  const model = await loadModel(path, options);
  let second: readonly number[];
  let times: { first: { ms: number }; next: { ms: number; cachedTokens: number } };
  let tokens: readonly number[];
  try {
    const source = createTokenSource(model.modelInfo().vocabSize);
    // The first run of a process also pays for pages of memory that were never used.
    await timeFirstToken(model, source(64));
    const prompt = source(promptTokens);
    const first = await timeFirstToken(model, prompt);
    const answer = await model.generate(prompt, generation);
    second = [...prompt, ...answer.tokenIds, ...source(QUESTION_TOKENS)];
    times = { first, next: await timeFirstToken(model, second) };
    tokens = (await model.generate(second, generation)).tokenIds;
  } finally {
    await model.dispose();
  }
  const fresh = await loadModel(path, options);
  try {
    const uncached = await fresh.generate(second, generation);
    const isEqual = uncached.tokenIds.join() === tokens.join() && uncached.usage.cachedTokens === 0;
    const { first, next } = times;
    return { firstMs: first.ms, secondMs: next.ms, cachedTokens: next.cachedTokens, promptTokens, isEqual };
  } finally {
    await fresh.dispose();
  }
}
