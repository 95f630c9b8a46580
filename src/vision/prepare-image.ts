import { readImage } from './read-image.ts';
import { resizeToSquare } from './resize.ts';
import type { VisionShape } from './vision-shape.ts';

/** The input of the encoder: f32[3 × size × size], colour by colour, normalized with the file's mean and deviation. */
export async function prepareImage(
  bytes: Uint8Array,
  { imageSize, mean, std }: Pick<VisionShape, 'imageSize' | 'mean' | 'std'>,
): Promise<Float32Array> {
  const square = resizeToSquare(await readImage(bytes), imageSize);
  const numPixels = imageSize ** 2;
  const pixels = new Float32Array(3 * numPixels);
  for (let colour = 0; colour < 3; colour++) {
    for (let i = 0; i < numPixels; i++) {
      pixels[colour * numPixels + i] = (square[i * 3 + colour]! / 255 - mean[colour]!) / std[colour]!;
    }
  }
  return pixels;
}
