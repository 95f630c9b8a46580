import { RuvLLMError } from '../core/errors.ts';
import { siteOf } from './target-shapes.ts';
import { ADAPTER_TARGETS, type Adapter, type LowRankFactors } from './types.ts';

/** Limits of one adapter: far beyond any in use, and well below the memory of a machine. */
export const ADAPTER_LIMITS = {
  /** A rank above the smaller side of a matrix is no longer low; even 1,024 is unusual. */
  maxRank: 1024,
  /** Total of all factors, as floats. */
  maxBytes: 2 ** 31,
  /** |alpha / rank|: larger values are typing errors and overflow. */
  maxScale: 2 ** 16,
} as const;

/** Bytes of the factors as floats: their memory without alignment. */
export function adapterBytes(factors: readonly Pick<LowRankFactors, 'rank' | 'numCols' | 'numRows'>[]): number {
  return factors.reduce((sum, { rank, numCols, numRows }) => sum + 4 * rank * (numCols + numRows), 0);
}

/** Creates an adapter in canonical order with its hash; throws if a factor is invalid. Does not copy the factors. */
export async function createAdapter(architecture: string, factors: readonly LowRankFactors[]): Promise<Adapter> {
  if (factors.length === 0) throw invalid('must change at least one matrix');
  const sizeBytes = adapterBytes(factors);
  if (!(sizeBytes <= ADAPTER_LIMITS.maxBytes)) {
    throw invalid(`${sizeBytes} bytes exceed the limit of ${ADAPTER_LIMITS.maxBytes}`);
  }
  const sorted = [...factors].sort(
    // The LM head is last, though its layer is -1.
    (a, b) => layerOrder(a) - layerOrder(b) || ADAPTER_TARGETS.indexOf(a.target) - ADAPTER_TARGETS.indexOf(b.target),
  );
  sorted.forEach((factor, i) => {
    checkFactors(factor);
    if (i > 0 && siteOf(factor) === siteOf(sorted[i - 1]!)) throw invalid(`${siteOf(factor)} is changed twice`);
  });
  return { architecture, factors: sorted, contentHash: await hashFactors(architecture, sorted) };
}

const layerOrder = ({ target, layer }: LowRankFactors): number => (target === 'output' ? Infinity : layer);

function checkFactors(factor: LowRankFactors): void {
  const { target, layer, numCols, numRows, rank, scale, a, b } = factor;
  const where = siteOf(factor);
  if (!ADAPTER_TARGETS.includes(target)) throw invalid(`unknown target "${target}"`);
  if (target === 'output' ? layer !== -1 : !(Number.isInteger(layer) && layer >= 0)) {
    throw invalid(`${target} cannot be in layer ${layer}`);
  }
  for (const size of [numCols, numRows, rank]) {
    if (!Number.isSafeInteger(size) || size < 1)
      throw invalid(`${where}: ${rank} x ${numCols} and ${numRows} x ${rank}`);
  }
  if (rank > ADAPTER_LIMITS.maxRank) {
    throw new RuvLLMError('unsupported', `${where} has rank ${rank}, the limit is ${ADAPTER_LIMITS.maxRank}`, {
      data: { tensor: where, rank, limit: ADAPTER_LIMITS.maxRank },
    });
  }
  if (a.length !== rank * numCols || b.length !== numRows * rank) {
    throw invalid(
      `${where}: factors have ${a.length} and ${b.length} values, ` +
        `${rank} x ${numCols} and ${numRows} x ${rank} require ${rank * numCols} and ${numRows * rank}`,
    );
  }
  if (!(Math.abs(scale) <= ADAPTER_LIMITS.maxScale)) {
    throw invalid(`${where} is scaled by ${scale}, the limit is ${ADAPTER_LIMITS.maxScale}`);
  }
  for (const [name, values] of [
    ['A', a],
    ['B', b],
  ] as const) {
    const at = values.findIndex((value) => !Number.isFinite(value));
    if (at >= 0) throw invalid(`${where}: value ${at} of ${name} is ${values[at]}`);
  }
}

const invalid = (message: string): RuvLLMError => new RuvLLMError('invalid_option', `adapter: ${message}`);

/** Hashes each factor off this thread, then the hashes with the shapes. */
async function hashFactors(architecture: string, factors: readonly LowRankFactors[]): Promise<string> {
  const parts: unknown[] = ['ruvllm adapter 1', architecture];
  for (const { target, layer, numCols, numRows, rank, scale, a, b } of factors) {
    parts.push([target, layer, numCols, numRows, rank, Math.fround(scale), await digest(a), await digest(b)]);
  }
  // JSON delimits the parts: different lists have different texts.
  return digest(new TextEncoder().encode(JSON.stringify(parts)));
}

async function digest(values: Float32Array | Uint8Array): Promise<string> {
  const view = new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
  // Web Crypto rejects views of shared memory, which arenas use.
  const bytes = view.buffer instanceof ArrayBuffer ? (view as Uint8Array<ArrayBuffer>) : Uint8Array.from(view);
  const hash = new Uint8Array(await crypto.subtle.digest('SHA-256', bytes));
  return Array.from(hash, (byte) => byte.toString(16).padStart(2, '0')).join('');
}
