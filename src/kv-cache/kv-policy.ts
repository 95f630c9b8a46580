import type { PackedKvPrecision } from '../kernels/contract.ts';

/** Precision of older KV pages; `auto`: q8 unless a measurement shows a loss. */
export type KvPacking = 'auto' | 'off' | 'q8' | 'q4';

/** Tokens at the end of a sequence that stay unpacked: attention looks mostly at recent ones. */
export const FLOAT_TAIL_TOKENS = 256;

/**
 * How far, in nats, a policy's mean KL divergence from f16 pages may exceed that of f32 pages. f32 pages are the floor: where
 * kernels round activations to eight bits, any tiny difference flips some of them. Limits follow what rounding the weights of
 * an 8 B model costs: q8 stays below 8-bit weights (1.4e-3), q4 below 5-bit weights (1.1e-2).
 */
export const KV_QUALITY_LIMITS: Readonly<Record<PackedKvPrecision, number>> = { q8: 1e-3, q4: 1e-2 };

/** Effect of one page precision on a model's distributions. */
export interface KvPolicyQuality {
  readonly meanKl: number;
  readonly p99Kl: number;
  /** Share of tokens whose most likely next token stayed the same. */
  readonly top1: number;
}

/** A quality measurement of one model. */
export interface KvQualityRecord {
  /** Hash of the model's content. */
  readonly modelHash: string;
  /** Tokens that stayed unpacked. A shorter tail than `FLOAT_TAIL_TOKENS` overstates the loss. */
  readonly tailTokens: number;
  /** Number of compared distributions. */
  readonly numTokens: number;
  /** Mean KL of f32 pages from f16 pages: the noise floor of this model. */
  readonly floorKl: number;
  readonly policies: Readonly<Partial<Record<PackedKvPrecision, KvPolicyQuality>>>;
}

/** Below this a single odd token dominates the mean. */
export const MIN_QUALITY_TOKENS = 500;

/** A longer float tail than the policies use would understate the loss. */
const isMeaningful = ({ tailTokens, numTokens }: KvQualityRecord): boolean =>
  tailTokens <= FLOAT_TAIL_TOKENS && numTokens >= MIN_QUALITY_TOKENS;

export interface PackingChoice {
  readonly packed: PackedKvPrecision | null;
  /** Human-readable, with the numbers. */
  readonly reason: string;
}

/** Fallback if a policy exceeds its limit. */
const NEXT_BETTER: Readonly<Record<PackedKvPrecision, PackedKvPrecision | null>> = { q4: 'q8', q8: null };

/** The requested policy, or the next better one whose measurement is within its limit. */
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
    // False for NaN, so a failed measurement is never within the limit.
    if (excess <= limit)
      return { packed, reason: [...refused, `${packed}: ${numbers}, allowed difference ${limit}`].join('; ') };
    refused.push(`${packed} not chosen: ${numbers}, above the allowed difference of ${limit}`);
    packed = NEXT_BETTER[packed];
  }
  return { packed, reason: refused.join('; ') };
}
