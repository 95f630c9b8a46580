import type { VisionShape } from './vision-shape.ts';

/** Copies f32[3 × size × size] into one row per patch, left to right, then down: its values colour by colour, row by row. */
export function cutPatches(
  pixels: Float32Array,
  { imageSize, patchSize, gridSize }: Pick<VisionShape, 'imageSize' | 'patchSize' | 'gridSize'>,
  out: Float32Array,
): void {
  let at = 0;
  for (let patch = 0; patch < gridSize ** 2; patch++) {
    const left = (patch % gridSize) * patchSize;
    const top = Math.floor(patch / gridSize) * patchSize;
    for (let colour = 0; colour < 3; colour++) {
      for (let y = 0; y < patchSize; y++) {
        const from = (colour * imageSize + top + y) * imageSize + left;
        out.set(pixels.subarray(from, from + patchSize), at);
        at += patchSize;
      }
    }
  }
}
