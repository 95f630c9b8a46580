import { RuvLLMError } from '../core/errors.ts';
import { alignArena, type Offset } from './arena-alignment.ts';

/** Tokens in one KV page. */
export const PAGE_TOKENS = 16;

/**
 * The KV pages of one model. Page p of layer l starts at base + p * pageBytes + l * layerBytes: pageBytes is the stride of
 * page ids, not the size of a page. Packed pages may be longer, so that they can start anywhere in memory shared with other
 * pages; the caller ensures that no two overlap. Writable pages hold, as f16 or f32,
 *   K: [numKvHeads][headDim][PAGE_TOKENS]   (transposed: scores of 16 tokens come from contiguous loads)
 *   V: [numKvHeads][PAGE_TOKENS][headDim]
 * Pages from `packPages` hold one head after the other, without gaps,
 *   q8: f16[headDim] key scales, i8[headDim][PAGE_TOKENS] keys, f16[PAGE_TOKENS] value scales, i8[PAGE_TOKENS][headDim]
 *       values: q * scale
 *   q4: f16[headDim] key scales, f16[headDim] key mins, u4[headDim][PAGE_TOKENS] keys, f16[PAGE_TOKENS] value scales,
 *       f16[PAGE_TOKENS] value mins, u4[PAGE_TOKENS][headDim] values: q * scale + min. A row of n four-bit numbers is n / 2
 *       bytes: byte i holds number i in its low half and number i + n / 2 in its high half.
 * so keys are rounded per channel, because channel outliers recur across tokens, and values per token.
 */
export interface KvRegion {
  readonly base: Offset;
  /** Distance of page ids; the product with an id may need more than 32 bits. */
  readonly pageBytes: number;
  readonly layerBytes: number;
  /** Page ids, all below 2^31. */
  readonly numPages: number;
  readonly numKvHeads: number;
  readonly headDim: number;
  readonly precision: KvPrecision;
}

/** Precisions of `writeKv`. f16 halves the memory; f32 is for comparison with runtimes that round elsewhere. */
export type FloatKvPrecision = 'f16' | 'f32';

/** Precisions of `packPages`. */
export type PackedKvPrecision = 'q8' | 'q4';

/** The precision of a region's keys and values. */
export type KvPrecision = FloatKvPrecision | PackedKvPrecision;

/** Bytes of K and V of one head in one page. */
const HEAD_BYTES: Readonly<Record<KvPrecision, (headDim: number) => number>> = {
  f16: (headDim) => 2 * PAGE_TOKENS * headDim * 2,
  f32: (headDim) => 2 * PAGE_TOKENS * headDim * 4,
  q8: (headDim) => 2 * PAGE_TOKENS * headDim + 2 * (headDim + PAGE_TOKENS),
  q4: (headDim) => PAGE_TOKENS * headDim + 4 * (headDim + PAGE_TOKENS),
};

/** Bytes of one head of one layer in one page: K and V. */
export function kvHeadBytes(headDim: number, precision: KvPrecision): number {
  return HEAD_BYTES[precision](headDim);
}

/** Bytes of one layer in one page: K and V. */
export function kvLayerBytes(numKvHeads: number, headDim: number, precision: KvPrecision): number {
  return alignArena(numKvHeads * kvHeadBytes(headDim, precision));
}

export function isPacked({ precision }: KvRegion): boolean {
  return precision === 'q8' || precision === 'q4';
}

/** Throws unless `kv` is writable and `packed`, if there is one, is packed and has the same heads. */
export function checkRegions(what: string, kv: KvRegion, packed: KvRegion | null): void {
  if (isPacked(kv)) {
    throw new RuvLLMError(
      'internal',
      `${what} on ${kv.precision} pages: packed pages are read-only, only packPages creates them`,
    );
  }
  if (packed === null) return;
  if (!isPacked(packed) || packed.numKvHeads !== kv.numKvHeads || packed.headDim !== kv.headDim) {
    throw new RuvLLMError(
      'internal',
      `${what}: packed pages are ${packed.precision} of ${packed.numKvHeads} heads of ${packed.headDim} values, full-precision pages ` +
        `${kv.precision} of ${kv.numKvHeads} heads of ${kv.headDim}`,
    );
  }
  if (kv.headDim % 4 !== 0) {
    throw new RuvLLMError(
      'unsupported',
      `${what}: packed pages require heads of a multiple of 4 values, got ${kv.headDim}`,
    );
  }
}
