// (module (func (export "dot") (param i32 i32) (result i32)
//   (i32x4.extract_lane 0 (i32x4.relaxed_dot_i8x16_i7x16_add_s
//     (i8x16.splat (local.get 0)) (i8x16.splat (local.get 1)) (i32x4.splat (i32.const 0))))))
// prettier-ignore
const PROBE = Uint8Array.of(
  0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00,
  0x01, 0x07, 0x01, 0x60, 0x02, 0x7f, 0x7f, 0x01, 0x7f, // type 0: (i32, i32) -> i32
  0x03, 0x02, 0x01, 0x00,
  0x07, 0x07, 0x01, 0x03, 0x64, 0x6f, 0x74, 0x00, 0x00, // export function 0 as "dot"
  0x0a, 0x16, 0x01, 0x14, 0x00,
  0x20, 0x00, 0xfd, 0x0f, 0x20, 0x01, 0xfd, 0x0f, 0x41, 0x00, 0xfd, 0x11,
  0xfd, 0x93, 0x02, 0xfd, 0x1b, 0x00, 0x0b,
);

/** The largest products of the signed-dot kernels: activations are in ±127, weights in -128 to 127. */
const EXTREMES: readonly (readonly [number, number])[] = [
  [127, 127],
  [127, -128],
  [-127, 127],
  [-127, -128],
];

/**
 * Whether this engine's relaxed dot product is exact for signed bytes. For a negative second operand the specification
 * leaves the result to the processor: Arm multiplies signed bytes, x64 treats the operand as unsigned.
 */
export function hasSignedDot(): boolean {
  if (!WebAssembly.validate(PROBE)) return false;
  const { dot } = new WebAssembly.Instance(new WebAssembly.Module(PROBE)).exports as {
    dot: (x: number, w: number) => number;
  };
  return EXTREMES.every(([x, w]) => dot(x, w) === 4 * x * w);
}
