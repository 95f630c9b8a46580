import type { Model } from '../runtime/model.ts';

export interface SpeedOptions {
  readonly numPromptTokens: number;
  readonly numTokens: number;
  readonly numRuns: number;
  readonly signal: AbortSignal;
}

export interface SpeedResult {
  readonly numPromptTokens: number;
  readonly numTokens: number;
  /** Per run, in order. */
  readonly promptTokensPerSecond: readonly number[];
  readonly tokensPerSecond: readonly number[];
  readonly firstTokenMs: readonly number[];
}

const TEXT = 'The old lighthouse keeper wrote down the weather every evening, and nobody had ever asked him why. ';

/** Measures prompts of a fixed length; the first, cold run is not counted. */
export async function measureSpeed(model: Model, options: SpeedOptions): Promise<SpeedResult> {
  const { maxContext } = model.modelInfo();
  const numTokens = Math.min(options.numTokens, Math.max(1, Math.floor(maxContext / 2)));
  const numPromptTokens = Math.max(1, Math.min(options.numPromptTokens, maxContext - numTokens));
  const runs = [];
  for (let run = 0; run <= options.numRuns; run++) {
    const { timings } = await model.generate(promptOf(model, numPromptTokens, run), {
      maxTokens: numTokens,
      temperature: 0,
      ignoreEos: true,
      signal: options.signal,
    });
    if (run > 0) runs.push(timings);
  }
  return {
    numPromptTokens,
    numTokens,
    promptTokensPerSecond: runs.map((timings) => timings.promptTokensPerSecond ?? 0),
    tokensPerSecond: runs.map((timings) => timings.tokensPerSecond ?? 0),
    firstTokenMs: runs.map((timings) => timings.firstTokenMs),
  };
}

/** Every run starts with a different token, so that the prefix cache never hits. */
function promptOf({ tokenizer }: Model, numTokens: number, run: number): number[] {
  const ids = tokenizer.encode(TEXT);
  return Array.from({ length: numTokens }, (_, i) => ids[(i + run) % ids.length]!);
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}
