import { MAX_TEXTS, placesOf } from '../../../src/gateway/text-index.ts';
import { TOKENS_PER_REQUEST } from '../../../src/gateway/choose-node.ts';
import { readFigures, type SimFigures } from './sim-figures.ts';
import { attendedTokens } from './sim-nodes.ts';
import type { PolicyName, ServiceTimes } from './sim-options.ts';
import { simulate } from './simulate.ts';
import { createSimTrace } from './trace.ts';

/** The time to the first token of a prompt. */
export interface ServiceSample {
  readonly numPromptTokens: number;
  /** Without those of a cache. */
  readonly numTokens: number;
  readonly ms: number;
}

export type FittedService = Pick<ServiceTimes, 'fixedMs' | 'tokenMs' | 'attentionMs'>;

/** Least squares of relative errors, because most requests are short. */
export function fitService(samples: readonly ServiceSample[]): FittedService {
  const rows = samples.map(({ numPromptTokens, numTokens, ms }) =>
    [1, numTokens, attendedTokens(numTokens, numPromptTokens)].map((x) => x / ms),
  );
  const [fixedMs, tokenMs, attentionMs] = solve(
    [0, 1, 2].map((i) => [
      ...[0, 1, 2].map((j) => rows.reduce((sum, row) => sum + row[i]! * row[j]!, 0)),
      rows.reduce((sum, row) => sum + row[i]!, 0),
    ]),
  );
  return { fixedMs: fixedMs!, tokenMs: tokenMs!, attentionMs: attentionMs! };
}

/** The solution of equations by elimination; the last number of each row is its right side. */
function solve(rows: number[][]): readonly number[] {
  for (const [i, pivot] of rows.entries()) {
    for (const [j, row] of rows.entries()) {
      if (j === i) continue;
      const factor = row[i]! / pivot[i]!;
      for (let k = i; k < row.length; k++) row[k]! -= factor * pivot[k]!;
    }
  }
  return rows.map((row, i) => row.at(-1)! / row[i]!);
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
  options: { readonly policy: PolicyName; readonly numNodes: number; readonly service: FittedService },
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
