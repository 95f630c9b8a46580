import { percentile } from '../report.ts';
import type { SimResult } from './simulate.ts';
import type { SimTrace } from './trace.ts';

export interface SimFigures {
  readonly numRequests: number;
  /** Requests without an answer. */
  readonly numFailed: number;
  readonly hitShare: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** Most computed prompt tokens of a node by the mean. */
  readonly imbalance: number;
}

/** The requests that arrived in a span of time. */
export function readFigures(trace: SimTrace, result: SimResult, fromMs = 0, toMs = Infinity): SimFigures {
  const times: number[] = [];
  const work = new Float64Array(result.busyMs.length);
  let [numRequests, numCached, numTokens] = [0, 0, 0];
  for (let i = 0; i < trace.numRequests; i++) {
    if (trace.atMs[i]! < fromMs || trace.atMs[i]! >= toMs) continue;
    numRequests++;
    if (Number.isNaN(result.ttftMs[i]!)) continue;
    times.push(result.ttftMs[i]!);
    numCached += result.cachedTokens[i]!;
    numTokens += trace.numTokens[i]!;
    work[result.nodes[i]!]! += trace.numTokens[i]! - result.cachedTokens[i]!;
  }
  const sorted = Float64Array.from(times).sort();
  const sum = work.reduce((all, one) => all + one, 0);
  return {
    numRequests,
    numFailed: numRequests - times.length,
    hitShare: numTokens === 0 ? NaN : numCached / numTokens,
    p50Ms: sorted.length === 0 ? NaN : percentile(sorted, 0.5),
    p99Ms: sorted.length === 0 ? NaN : percentile(sorted, 0.99),
    imbalance: sum === 0 ? NaN : (Math.max(...work) * work.length) / sum,
  };
}
