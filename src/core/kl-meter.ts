/** Compares next-token distributions with reference ones. */
export interface KlMeter {
  add(expected: Float32Array, actual: Float32Array): void;
  result(): KlResult;
}

/** The mean Kullback-Leibler divergence in nats, its 99th percentile and the share of equal first choices. */
export interface KlResult {
  readonly numTokens: number;
  readonly meanKl: number;
  readonly p99Kl: number;
  readonly top1: number;
}

/** An empty meter. */
export function createKlMeter(): KlMeter {
  const divergences: number[] = [];
  let numSame = 0;
  return {
    add(expected, actual) {
      const [p, q] = [summarize(expected), summarize(actual)];
      let sum = 0;
      for (let id = 0; id < expected.length; id++) {
        const logP = expected[id]! - p.logSum;
        sum += Math.exp(logP) * (logP - (actual[id]! - q.logSum));
      }
      divergences.push(sum);
      if (p.best === q.best) numSame++;
    },
    result() {
      const sorted = divergences.toSorted((a, b) => a - b);
      const numTokens = sorted.length;
      return {
        numTokens,
        meanKl: sorted.reduce((sum, kl) => sum + kl, 0) / numTokens,
        p99Kl: sorted[Math.ceil(numTokens * 0.99) - 1] ?? NaN,
        top1: numSame / numTokens,
      };
    },
  };
}

/** In doubles, because the fourth digit matters. */
function summarize(logits: Float32Array): { logSum: number; best: number } {
  let best = 0;
  for (let id = 1; id < logits.length; id++) if (logits[id]! > logits[best]!) best = id;
  let sum = 0;
  for (let id = 0; id < logits.length; id++) sum += Math.exp(logits[id]! - logits[best]!);
  return { logSum: logits[best]! + Math.log(sum), best };
}
