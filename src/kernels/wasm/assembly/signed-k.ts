// Shared by the K-quants of the signed-dot build. All sums are integers until the end of the block of 256.

/** Offset of a block's sums after the results: i32x4[4 groups][T tokens]. Registers only hold the sums of a sub-block. */
export const SUMS: usize = 256;

// @ts-ignore: decorator
@inline
export function lowNibbles(v: v128): v128 { return v128.and(v, i8x16.splat(0x0f)); }
// @ts-ignore: decorator
@inline
export function highNibbles(v: v128): v128 { return i8x16.shr_u(v, 4); }

// @ts-ignore: decorator
@inline
export function addSum(out: usize, at: usize, sum: v128, scales: v128): void {
  v128.store(out + at, i32x4.add(v128.load(out + at, SUMS), i32x4.mul(sum, scales)), SUMS);
}
