import type { Model } from 'ruvllm';
import { createTokenSource, timeFirstToken } from './first-token.ts';
import { median } from './report.ts';

/** Times to first token without and with the cache; medians of interleaved rounds. */
export interface Comparison {
  readonly name: string;
  readonly offMs: number;
  readonly onMs: number;
  readonly promptTokens: number;
  /** Cached tokens of one request. */
  readonly cachedTokens: number;
}

export const ratioOf = ({ offMs, onMs }: Comparison): number => offMs / onMs;

/** A shared prefix, then questions of `questionTokens` each, as in chats and retrieval. */
export async function compareShared(
  model: Model,
  name: string,
  { sharedTokens, questionTokens, numRounds }: { sharedTokens: number; questionTokens: number; numRounds: number },
): Promise<Comparison> {
  const fresh = createTokenSource(model.modelInfo().vocabSize, sharedTokens * 1000 + questionTokens);
  const shared = fresh(sharedTokens);
  const ask = (): number[] => [...shared, ...fresh(questionTokens)];
  await timeFirstToken(model, ask()); // The one request that computes it.
  const off: number[] = [];
  const on: number[] = [];
  let cachedTokens = 0;
  for (let round = 0; round < numRounds; round++) {
    off.push((await timeFirstToken(model, ask(), { cachePrefix: false })).ms);
    const hit = await timeFirstToken(model, ask());
    on.push(hit.ms);
    ({ cachedTokens } = hit);
  }
  return { name, offMs: median(off), onMs: median(on), promptTokens: sharedTokens + questionTokens, cachedTokens };
}

/** Concurrent requests that share a new instruction: the mean time to first token. */
export async function compareBatch(
  model: Model,
  name: string,
  options: { numRequests: number; sharedTokens: number; questionTokens: number; numRounds: number },
): Promise<Comparison> {
  const { numRequests, sharedTokens, questionTokens, numRounds } = options;
  const fresh = createTokenSource(model.modelInfo().vocabSize, 77_000);
  let cachedTokens = 0;
  async function meanMs(cachePrefix: boolean): Promise<number> {
    const shared = fresh(sharedTokens);
    const prompts = Array.from({ length: numRequests }, () => [...shared, ...fresh(questionTokens)]);
    const times = await Promise.all(prompts.map((prompt) => timeFirstToken(model, prompt, { cachePrefix })));
    if (cachePrefix) cachedTokens = median(times.map((time) => time.cachedTokens));
    return times.reduce((sum, { ms }) => sum + ms, 0) / numRequests;
  }
  const off: number[] = [];
  const on: number[] = [];
  for (let round = 0; round < numRounds; round++) {
    off.push(await meanMs(false));
    on.push(await meanMs(true));
  }
  return { name, offMs: median(off), onMs: median(on), promptTokens: sharedTokens + questionTokens, cachedTokens };
}
