import type { PackedKvPrecision } from '../kernels/contract.ts';

/** How older pages shall be kept: `auto` is q8 wherever that is known, or not known not, to be harmless. */
export type KvPacking = 'auto' | 'off' | 'q8' | 'q4';

/** Tokens of a sequence that stay as they were written: most of what attention looks at is recent. */
export const FLOAT_TAIL_TOKENS = 256;

/**
 * By how much, in nats, the mean KL divergence of a policy's next-token distributions from those over f16 pages may be above
 * what f32 pages have: where kernels round activations to eight bits, the least difference flips some of them, which is not
 * the policy's doing. Two such differences that do not depend on each other add up. By what rounding the weights of an 8 B model costs: q8 stays below its weights in eight bits (1.4e-3), which nobody can tell
 * from sixteen; q4 below its weights in five (1.1e-2), which most find good, for memory that halves once more.
 */
export const KV_QUALITY_LIMITS: Readonly<Record<PackedKvPrecision, number>> = { q8: 1e-3, q4: 1e-2 };

/** What one way to pack pages did to the distributions of a model. */
export interface KvPolicyQuality {
  readonly meanKl: number;
  readonly p99Kl: number;
  /** Share of tokens whose most likely next token stayed the same. */
  readonly top1: number;
}

/** A measurement of one model. */
export interface KvQualityRecord {
  /** Hash of the model's content. */
  readonly modelHash: string;
  /** Tokens that stayed float. A shorter tail than `FLOAT_TAIL_TOKENS` finds the policies worse than they will be. */
  readonly tailTokens: number;
  /** Distributions compared. */
  readonly numTokens: number;
  /** Mean KL of f32 pages from f16 ones: what the least of differences does to this model. */
  readonly floorKl: number;
  readonly policies: Readonly<Partial<Record<PackedKvPrecision, KvPolicyQuality>>>;
}

/** Fewer distributions say nothing: one odd token among a hundred is a mean of its own. */
export const MIN_QUALITY_TOKENS = 500;

/** A longer float tail than the policies have would make them look better than they are. */
const isMeaningful = ({ tailTokens, numTokens }: KvQualityRecord): boolean =>
  tailTokens <= FLOAT_TAIL_TOKENS && numTokens >= MIN_QUALITY_TOKENS;

export interface PackingChoice {
  readonly packed: PackedKvPrecision | null;
  /** For people: why, with the numbers. */
  readonly reason: string;
}

/** What to try when a policy is above its limit. */
const NEXT_BETTER: Readonly<Record<PackedKvPrecision, PackedKvPrecision | null>> = { q4: 'q8', q8: null };

/** The policy that was wished for, or the next better one whose measurement is within its limit. */
export function choosePacking(wish: KvPacking, record: KvQualityRecord | null): PackingChoice {
  const measured = record !== null && isMeaningful(record) ? record : null;
  if (wish === 'off') return { packed: null, reason: 'off' };
  const refused: string[] = [];
  let packed: PackedKvPrecision | null = wish === 'auto' ? 'q8' : wish;
  while (packed !== null) {
    const quality: KvPolicyQuality | undefined = measured?.policies[packed];
    if (quality === undefined) return { packed, reason: [...refused, `${packed}: not measured`].join('; ') };
    const limit = KV_QUALITY_LIMITS[packed];
    const excess = quality.meanKl - measured!.floorKl;
    const numbers = `mean KL ${quality.meanKl.toExponential(2)}, with f32 pages ${measured!.floorKl.toExponential(2)}`;
    // A comparison that is false for NaN, too: a model that gives none is not within.
    if (excess <= limit)
      return { packed, reason: [...refused, `${packed}: ${numbers}, allowed difference ${limit}`].join('; ') };
    refused.push(`${packed} not chosen: ${numbers}, above the allowed difference of ${limit}`);
    packed = NEXT_BETTER[packed];
  }
  return { packed, reason: refused.join('; ') };
}
