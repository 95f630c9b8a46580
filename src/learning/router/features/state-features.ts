/** What retrieval found for a request. */
export interface RetrievalState {
  /** Of the hits, best first. */
  readonly similarities: readonly number[];
  /** Hops from the nearest hit, by hit; empty without a graph. */
  readonly hops?: readonly number[];
}

/** What the machine and the candidates are like now. */
export interface SystemState {
  /** From 0 to 1 each. */
  readonly load?: number;
  readonly memoryUsed?: number;
  readonly hasAccelerator?: boolean;
  readonly isPrivate?: boolean;
  /** By candidate, tokens of this very prompt whose keys and values are still there. */
  readonly warmTokens?: readonly number[];
  /** By candidate, median of the last minutes. */
  readonly latencyMs?: readonly number[];
  /** By candidate, of the last accepted answers in this domain. */
  readonly accuracy?: readonly number[];
}

const finite = (value: number): number => (Number.isFinite(value) ? value : 0);
const MAX_HITS = 32;
const NUM_BINS = 16;

/** Count, spread, entropy, gaps and histogram of the similarities, then depth and density of the hits: 48 numbers. */
export function retrievalFeatures(state: RetrievalState | undefined, out: Float32Array): void {
  const hits = (state?.similarities ?? []).slice(0, MAX_HITS).map((value) => Math.max(-1, Math.min(1, finite(value))));
  if (hits.length === 0) return;
  const mean = hits.reduce((sum, hit) => sum + hit, 0) / hits.length;
  const weights = hits.map((hit) => Math.exp(10 * hit));
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  const entropy = -weights.reduce((sum, weight) => sum + (weight / total) * Math.log(weight / total), 0);
  const hops = (state?.hops ?? []).slice(0, MAX_HITS).map(finite);
  const values = [
    Math.log1p(hits.length),
    hits[0]!,
    hits.at(-1)!,
    mean,
    Math.sqrt(hits.reduce((sum, hit) => sum + (hit - mean) ** 2, 0) / hits.length),
    entropy,
    hits[0]! - (hits[1] ?? 0),
    hits[0]! - mean,
    hops.length === 0 ? 0 : Math.max(...hops),
    hops.length === 0 ? 0 : hops.reduce((sum, hop) => sum + hop, 0) / hops.length,
    hits.filter((hit) => hit > 0.8).length / hits.length,
    hits.filter((hit) => hit > 0.5).length / hits.length,
  ];
  const bins = new Float32Array(NUM_BINS);
  for (const hit of hits) bins[Math.min(NUM_BINS - 1, Math.floor(((hit + 1) / 2) * NUM_BINS))]! += 1 / hits.length;
  const all = [...values, ...bins, ...hits.slice(0, 20)];
  for (let i = 0; i < Math.min(out.length, all.length); i++) out[i] = all[i]!;
}

/** Four of the machine, then warm prefix, latency and accuracy of up to nine candidates: 32 numbers. */
export function systemFeatures(state: SystemState | undefined, out: Float32Array): void {
  if (state === undefined) return;
  const { load = 0, memoryUsed = 0, hasAccelerator = false, isPrivate = false } = state;
  const values = [finite(load), finite(memoryUsed), +hasAccelerator, +isPrivate];
  for (let i = 0; i < 9; i++) {
    values.push(
      Math.log1p(Math.max(0, finite(state.warmTokens?.[i] ?? 0))) / 5,
      Math.log1p(Math.max(0, finite(state.latencyMs?.[i] ?? 0))) / 5,
      finite(state.accuracy?.[i] ?? 0),
    );
  }
  for (let i = 0; i < Math.min(out.length, values.length); i++) out[i] = values[i]!;
}
