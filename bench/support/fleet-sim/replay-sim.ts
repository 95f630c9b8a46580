import { MAX_TEXTS, placesOf } from '../../../src/gateway/text-index.ts';
import { TOKENS_PER_REQUEST } from '../../../src/gateway/choose-node.ts';
import { readFigures, type SimFigures } from './sim-figures.ts';
import type { PolicyName } from './sim-options.ts';
import { simulate } from './simulate.ts';
import { createSimTrace } from './trace.ts';

/** The time to the first token of a prompt with these tokens to compute. */
export interface ServiceSample {
  readonly numTokens: number;
  readonly ms: number;
}

/** Least squares of relative errors, because most requests are short: a fixed time for each request, and a time for each token. */
export function fitService(samples: readonly ServiceSample[]): { readonly fixedMs: number; readonly tokenMs: number } {
  const weights = samples.map(({ ms }) => 1 / ms ** 2);
  const sum = weights.reduce((all, weight) => all + weight, 0);
  const mean = (of: (sample: ServiceSample) => number): number =>
    samples.reduce((all, sample, i) => all + weights[i]! * of(sample), 0) / sum;
  const [tokens, ms] = [mean(({ numTokens }) => numTokens), mean((sample) => sample.ms)];
  const covariance = mean((sample) => (sample.numTokens - tokens) * (sample.ms - ms));
  const tokenMs = covariance / mean(({ numTokens }) => (numTokens - tokens) ** 2);
  return { fixedMs: ms - tokenMs * tokens, tokenMs };
}

/** A request of a real replay: the prompt of a conversation begins with those before it. */
export interface ReplayedRequest {
  readonly conversation: number;
  readonly numTokens: number;
}

const MAX_PROMPT_TOKENS = 2 ** 16;
const GAP_MS = 1e6;

/** The same requests on simulated nodes, one after the other, with measured times. */
export function simulateReplay(
  requests: readonly ReplayedRequest[],
  options: { readonly policy: PolicyName; readonly numNodes: number; readonly service: ReturnType<typeof fitService> },
): SimFigures {
  // Blocks of one token: nodes reuse a page up to the first other token.
  const trace = createSimTrace(
    requests.map(({ conversation, numTokens }, i) => ({
      atMs: i * GAP_MS,
      blocks: Array.from({ length: numTokens }, (_, at) => conversation * MAX_PROMPT_TOKENS + at),
      numTokens,
      outputTokens: 1,
      session: conversation,
    })),
    1,
  );
  const result = simulate(trace, {
    policy: options.policy,
    numNodes: options.numNodes,
    numGateways: 1,
    cacheBlocks: trace.blocks.length,
    service: { ...options.service, decodeMs: 0, delayTokens: 0 },
    tokensPerRequest: TOKENS_PER_REQUEST,
    eventDelayMs: 0,
    probeMs: 1000,
    maxTexts: MAX_TEXTS,
    placesOf,
    isSticky: true,
    storm: null,
    isExhaustive: false,
    seed: 1,
  });
  return readFigures(trace, result);
}

/** The larger of the relative errors of the median time to first token and the cached share. */
export function simError(simulated: SimFigures, real: { readonly ttftMs: number; readonly hitShare: number }): number {
  return Math.max(Math.abs(simulated.p50Ms / real.ttftMs - 1), Math.abs(simulated.hitShare / real.hitShare - 1));
}
