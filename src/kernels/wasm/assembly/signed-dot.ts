// What the signed-dot build's kernels share. Its engine computes the relaxed dot product of signed bytes exactly, as SDOT on
// Arm does: one instruction for 16 products, no nibble-sized operand, no 16-bit sums that could overflow.
//
// A kernel computes 16 rows: four groups, each read at its own address, so that a splat of activations serves four vectors of
// weights. Results go to `out` as f32x4[4 groups][T tokens], a lane a row of the group.

/** Adds the products of four columns to each lane: 4 columns x 4 rows in `w`, the same 4 columns of a token in every lane of `x`. */
// @ts-ignore: decorator
@inline
export function dot(sum: v128, x: v128, w: v128): v128 { return i32x4.relaxed_dot_i8x16_i7x16_add_s(x, w, sum); }

// Lane splats: V8 makes one DUP of each of these shuffles. A load that splats costs the same, and an address besides.
// @ts-ignore: decorator
@inline
export function token0(v: v128): v128 { return i32x4.shuffle(v, v, 0, 0, 0, 0); }
// @ts-ignore: decorator
@inline
export function token1(v: v128): v128 { return i32x4.shuffle(v, v, 1, 1, 1, 1); }
// @ts-ignore: decorator
@inline
export function token2(v: v128): v128 { return i32x4.shuffle(v, v, 2, 2, 2, 2); }
// @ts-ignore: decorator
@inline
export function token3(v: v128): v128 { return i32x4.shuffle(v, v, 3, 3, 3, 3); }
