/** Limits that are checked before an image is decoded. */
export const IMAGE_LIMITS = {
  maxBytes: 20 * 2 ** 20,
  /** 32 megapixels: 128 MB as RGBA. */
  maxPixels: 32 * 2 ** 20,
  maxSide: 2 ** 15,
  /** Of the JPEG decoder: about 20 bytes per pixel. */
  maxJpegMemoryMb: 1024,
} as const;
