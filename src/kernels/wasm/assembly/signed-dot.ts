// Shared by the kernels of the signed-dot build. Its engine computes the relaxed dot product of signed bytes exactly, like
// SDOT on Arm: one instruction for 16 products, no nibble-sized operand, no 16-bit sums that could overflow.
//
// A kernel computes 16 rows: four groups at separate addresses, so that a splat of activations serves four vectors of
// weights. Results go to `out` as f32x4[4 groups][T tokens], one lane per row of the group.

/** Adds the products of four columns to each lane: 4 columns x 4 rows in `w`, the same 4 columns of a token in each lane of `x`. */
// @ts-ignore: decorator
@inline
export function dot(sum: v128, x: v128, w: v128): v128 { return i32x4.relaxed_dot_i8x16_i7x16_add_s(x, w, sum); }

// Lane splats: V8 compiles each of these shuffles to one DUP. A splatting load costs the same, plus an address.
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
