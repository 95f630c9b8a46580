import type { Model } from './model.ts';

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

/** A short measurement that took longer is the result: the model is slow. */
const MAX_BRIEF_MS = 3000;
/** Each part of a run, prompt and output, is to take about a second. */
const PART_SECONDS = 1;

/** Measures the speed of a model within a few seconds: a short measurement decides the length of the runs. */
export async function measureBriefly(model: Model, signal: AbortSignal): Promise<SpeedResult> {
  const startMs = performance.now();
  const brief = await measureSpeed(model, { numPromptTokens: 16, numTokens: 4, numRuns: 1, signal });
  if (performance.now() - startMs > MAX_BRIEF_MS) return brief;
  const numTokensFor = (tokensPerSecond: number, min: number, max: number): number =>
    Math.min(max, Math.max(min, Math.round(tokensPerSecond * PART_SECONDS)));
  return await measureSpeed(model, {
    numPromptTokens: numTokensFor(brief.promptTokensPerSecond[0]!, 16, 256),
    numTokens: numTokensFor(brief.tokensPerSecond[0]!, 8, 64),
    numRuns: 2,
    signal,
  });
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
