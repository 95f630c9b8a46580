import jpeg from 'jpeg-js';
import { invalidImage } from './image-error.ts';
import { readImageHeader } from './image-header.ts';
import { IMAGE_LIMITS } from './image-limits.ts';
import { decodePng } from './png/decode-png.ts';
import type { RgbImage } from './rgb-image.ts';
import { messageOf } from '../core/errors.ts';

/** Decodes a PNG or JPEG; typed errors for everything else. */
export async function readImage(bytes: Uint8Array): Promise<RgbImage> {
  const { format } = readImageHeader(bytes);
  return format === 'png' ? decodePng(bytes) : decodeJpeg(bytes);
}

function decodeJpeg(bytes: Uint8Array): RgbImage {
  try {
    return jpeg.decode(bytes, {
      useTArray: true,
      formatAsRGBA: false,
      tolerantDecoding: false,
      maxResolutionInMP: IMAGE_LIMITS.maxPixels / 1e6,
      maxMemoryUsageInMB: IMAGE_LIMITS.maxJpegMemoryMb,
    });
  } catch (error) {
    const reason = messageOf(error);
    throw invalidImage(`the JPEG cannot be decoded: ${reason.slice(0, 200)}`);
  }
}
