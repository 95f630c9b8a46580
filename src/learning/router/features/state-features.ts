/** Retrieval results for a request. */
export interface RetrievalState {
  /** Of the hits, best first. */
  readonly similarities: readonly number[];
}

/** Current state of the machine and the candidates. */
export interface SystemState {
  /** From 0 to 1. */
  readonly load?: number;
  /** By candidate, measured until the first token; 0: not yet. */
  readonly latencyMs?: readonly number[];
  /** By candidate, the share of the prompt that its prefix cache has. It costs no time, and says nothing about quality. */
  readonly warmShares?: readonly number[] | undefined;
}

const finite = (value: number): number => (Number.isFinite(value) ? value : 0);
const MAX_HITS = 32;
const NUM_BINS = 16;

/** Count, spread, entropy, gaps and density of the similarities, their histogram, and the first of them: 48 numbers. */
export function retrievalFeatures(state: RetrievalState | undefined, out: Float32Array): void {
  const hits = (state?.similarities ?? []).slice(0, MAX_HITS).map((value) => Math.max(-1, Math.min(1, finite(value))));
  if (hits.length === 0) return;
  const mean = hits.reduce((sum, hit) => sum + hit, 0) / hits.length;
  const weights = hits.map((hit) => Math.exp(10 * hit));
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  const entropy = -weights.reduce((sum, weight) => sum + (weight / total) * Math.log(weight / total), 0);
  const values = [
    Math.log1p(hits.length),
    hits[0]!,
    hits.at(-1)!,
    mean,
    Math.sqrt(hits.reduce((sum, hit) => sum + (hit - mean) ** 2, 0) / hits.length),
    entropy,
    hits[0]! - (hits[1] ?? 0),
    hits[0]! - mean,
    hits.filter((hit) => hit > 0.8).length / hits.length,
    hits.filter((hit) => hit > 0.5).length / hits.length,
  ];
  const bins = new Float32Array(NUM_BINS);
  for (const hit of hits) bins[Math.min(NUM_BINS - 1, Math.floor(((hit + 1) / 2) * NUM_BINS))]! += 1 / hits.length;
  const all = [...values, ...bins, ...hits];
  for (let i = 0; i < Math.min(out.length, all.length); i++) out[i] = all[i]!;
}

/** The load, then the latency of up to 31 candidates: 32 numbers. */
export function systemFeatures(state: SystemState | undefined, out: Float32Array): void {
  if (state === undefined) return;
  const latencies = (state.latencyMs ?? []).map((value) => Math.log1p(Math.max(0, finite(value))) / 5);
  const values = [finite(state.load ?? 0), ...latencies];
  for (let i = 0; i < Math.min(out.length, values.length); i++) out[i] = values[i]!;
}

/**
 * Where each number of both blocks lay in routers of version 1, which had inputs that no request filled: two of the graph's hops, three
 * of the machine, and the warm prefix and accuracy of each candidate. −1: missing in version 1.
 */
export function placesInVersion1(numRetrieval: number, numSystem: number): Int32Array {
  const retrieval = (i: number): number => (i < 8 ? i : i + 2 < numRetrieval ? i + 2 : -1);
  const system = (i: number): number => (i === 0 ? 0 : 2 + 3 * i < Math.min(numSystem, 31) ? 2 + 3 * i : -1);
  return Int32Array.from({ length: numRetrieval + numSystem }, (_, i) => {
    if (i < numRetrieval) return retrieval(i);
    const at = system(i - numRetrieval);
    return at < 0 ? -1 : numRetrieval + at;
  });
}
