import type { GenerateOptions, GenerateResult, Model, Prompt } from '../../../src/index.ts';

export interface Task {
  readonly prompt: Prompt;
  readonly options: GenerateOptions;
}

export interface PairResult {
  /** Time of plain decoding over that with drafts, from the first token of each answer to its last. */
  readonly speedup: number;
  readonly plainRate: number;
  readonly draftingRate: number;
  readonly numAccepted: number;
  readonly numRejected: number;
  readonly isIdentical: boolean;
}

/** Runs each task on both models, the order changing from task to task. */
export async function comparePairs(plain: Model, drafting: Model, tasks: readonly Task[]): Promise<PairResult> {
  let [plainMs, draftingMs, numTokens, numAccepted, numRejected] = [0, 0, 0, 0, 0];
  let isIdentical = true;
  for (const [i, { prompt, options }] of tasks.entries()) {
    const results = new Map<Model, GenerateResult>();
    const order = i % 2 === 0 ? [plain, drafting] : [drafting, plain];
    for (const model of order) results.set(model, await model.generate(prompt, options));
    const [expected, actual] = [results.get(plain)!, results.get(drafting)!];
    if (expected.tokenIds.join() !== actual.tokenIds.join()) isIdentical = false;
    plainMs += expected.timings.generateMs;
    draftingMs += actual.timings.generateMs;
    numTokens += Math.max(0, expected.usage.completionTokens - 1);
    numAccepted += actual.usage.acceptedDraftTokens;
    numRejected += actual.usage.rejectedDraftTokens;
  }
  return {
    speedup: plainMs / draftingMs,
    plainRate: (1000 * numTokens) / plainMs,
    draftingRate: (1000 * numTokens) / draftingMs,
    numAccepted,
    numRejected,
    isIdentical,
  };
}
