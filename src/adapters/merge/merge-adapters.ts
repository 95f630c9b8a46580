import { RuvLLMError } from '../../core/errors.ts';
import { choiceOption, integerOption, numberOption, optional, resolveOptions } from '../../core/options.ts';
import { createRandom } from '../../core/random.ts';
import { MAX_RANK } from '../../kernels/contract.ts';
import { createAdapter } from '../create-adapter.ts';
import { siteOf } from '../target-shapes.ts';
import type { Adapter, LowRankFactors } from '../types.ts';
import { MERGE_METHODS, type MergeMethod, type MergeMethodName, type Share } from './methods.ts';
import { type Product, refactorDense, type Refactored, refactorProduct } from './refactor.ts';
import { createMatrix, type Matrix, multiply } from './thin-svd.ts';

/** Options of a merge; every field has a default. */
export interface MergeOptions {
  /** How several ΔW become one. Default `linear`. */
  method?: MergeMethodName;
  /** Rank of the result. Default: the highest of the inputs. */
  rank?: number | null;
  /** For `ties` and `dare`: the share of values kept, above 0. Default 0.5. */
  density?: number;
  /** For `dare`. Default 0. */
  seed?: number;
}

/** An adapter and its weight. */
export interface MergeInput {
  readonly adapter: Adapter;
  /** Default 1. */
  readonly weight?: number;
}

/** The accuracy of a merge. */
export interface MergeReport {
  readonly method: MergeMethodName;
  /** For each matrix: its rank, and the share of ΔW (by squares) that the rank keeps. */
  readonly matrices: readonly { readonly site: string; readonly rank: number; readonly keptEnergy: number }[];
}

/** Maximum values of one dense ΔW: 512 MiB as doubles, the widest matrices of a 7B model. */
const MAX_DENSE_VALUES = 2 ** 26;
const MAX_ADAPTERS = 64;

/**
 * Merges adapters as ΔW = scale · B·A, then factors each matrix again: averages of A and B do not give the average ΔW.
 * Linear methods are exact up to the rank and never form ΔW; TIES and DARE form one matrix at a time.
 */
export async function mergeAdapters(
  inputs: readonly MergeInput[],
  options?: MergeOptions,
): Promise<{ readonly adapter: Adapter; readonly report: MergeReport }> {
  const resolved = resolveOptions<Required<MergeOptions>>('merge', options, {
    method: choiceOption('linear', Object.keys(MERGE_METHODS) as MergeMethodName[]),
    rank: optional(integerOption(1, 1, MAX_RANK)),
    density: numberOption(0.5, Number.MIN_VALUE, 1),
    seed: integerOption(0, 0, Number.MAX_SAFE_INTEGER),
  });
  checkInputs(inputs);
  const method: MergeMethod = MERGE_METHODS[resolved.method];
  const random = createRandom(resolved.seed);
  const factors: LowRankFactors[] = [];
  const matrices: MergeReport['matrices'][number][] = [];
  for (const [site, shares] of groupBySite(inputs)) {
    const rank = Math.min(resolved.rank ?? Math.max(...shares.map(({ factors: { rank } }) => rank)), MAX_RANK);
    const merged = mergeSite(method, shares, rank, { density: resolved.density, random });
    factors.push(toFactors(shares[0]!.factors, merged));
    matrices.push({ site, rank: merged.rank, keptEnergy: merged.keptEnergy });
  }
  const adapter = await createAdapter(inputs[0]!.adapter.architecture, factors);
  return { adapter, report: { method: resolved.method, matrices } };
}

interface SiteShare extends Share {
  readonly factors: LowRankFactors;
}

function mergeSite(
  method: MergeMethod,
  shares: readonly SiteShare[],
  rank: number,
  options: { density: number; random: ReturnType<typeof createRandom> },
): Refactored {
  if (method.isLinear) return refactorProduct(stack(shares, method.weights(shares)), rank);
  const { numRows, numCols } = shares[0]!.factors;
  if (numRows * numCols > MAX_DENSE_VALUES) {
    throw new RuvLLMError(
      'unsupported',
      `${siteOf(shares[0]!.factors)} is ${numRows} x ${numCols}, this merge method is limited to matrices of ${MAX_DENSE_VALUES} values`,
      { data: { numRows, numCols, limit: MAX_DENSE_VALUES } },
    );
  }
  const dense = shares.map(({ product }) => multiply(product.b, product.a));
  const weights = shares.map(({ weight }) => weight);
  return refactorDense(method.combine(dense, weights, options), rank);
}

function groupBySite(inputs: readonly MergeInput[]): Map<string, SiteShare[]> {
  const sites = new Map<string, SiteShare[]>();
  for (const { adapter, weight = 1 } of inputs) {
    for (const factors of adapter.factors) {
      const site = siteOf(factors);
      const shares = sites.get(site) ?? [];
      sites.set(site, shares);
      shares.push({ factors, weight, product: toProduct(factors) });
    }
  }
  // An adapter that does not change a matrix has a ΔW of zero there, which counts in a mean.
  for (const shares of sites.values()) {
    const missing = inputs.filter(({ adapter }) => !shares.some(({ factors }) => adapter.factors.includes(factors)));
    const { numRows, numCols } = shares[0]!.factors;
    for (const { weight = 1 } of missing) {
      const product = { b: createMatrix(numRows, 1), a: createMatrix(1, numCols) };
      shares.push({ factors: shares[0]!.factors, weight, product });
    }
  }
  return sites;
}

function toProduct({ numCols, numRows, rank, scale, a, b }: LowRankFactors): Product {
  return {
    b: createMatrix(
      numRows,
      rank,
      Float64Array.from(b, (value) => scale * value),
    ),
    a: createMatrix(rank, numCols, Float64Array.from(a)),
  };
}

/** Σ wᵢ·bᵢ·aᵢ as one product: all b side by side, all a below each other. */
function stack(shares: readonly SiteShare[], weights: readonly number[]): Product {
  const { numRows, numCols } = shares[0]!.factors;
  const total = shares.reduce((sum, { product }) => sum + product.a.numRows, 0);
  const b = createMatrix(numRows, total);
  const a = createMatrix(total, numCols);
  let first = 0;
  shares.forEach(({ product }, i) => {
    const rank = product.a.numRows;
    a.values.set(product.a.values, first * numCols);
    for (let row = 0; row < numRows; row++) {
      for (let r = 0; r < rank; r++) {
        b.values[row * total + first + r] = weights[i]! * product.b.values[row * rank + r]!;
      }
    }
    first += rank;
  });
  return { b, a };
}

function toFactors({ target, layer, numCols, numRows }: LowRankFactors, { a, b, rank }: Refactored): LowRankFactors {
  const single = ({ values }: Matrix): Float32Array => Float32Array.from(values);
  return { target, layer, numCols, numRows, rank, scale: 1, a: single(a), b: single(b) };
}

function checkInputs(inputs: readonly MergeInput[]): void {
  const fail = (message: string): never => {
    throw new RuvLLMError('invalid_option', `merge: ${message}`);
  };
  if (inputs.length < 1 || inputs.length > MAX_ADAPTERS)
    fail(`takes 1 to ${MAX_ADAPTERS} adapters, got ${inputs.length}`);
  const sizes = new Map<string, string>();
  for (const { adapter, weight = 1 } of inputs) {
    const { architecture } = inputs[0]!.adapter;
    if (adapter.architecture !== architecture)
      fail(`one adapter is for ${architecture}, another for ${adapter.architecture}`);
    if (!Number.isFinite(weight) || Math.abs(weight) > 1000) fail(`weights must be -1000 to 1000, got ${weight}`);
    for (const factors of adapter.factors) {
      const [site, size] = [siteOf(factors), `${factors.numRows} x ${factors.numCols}`];
      const firstSize = sizes.get(site) ?? size;
      if (firstSize !== size) fail(`${site} is ${firstSize} in one and ${size} in another`);
      sizes.set(site, size);
    }
  }
}
