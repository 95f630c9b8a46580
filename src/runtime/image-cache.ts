import type { EncodedImage } from './prompt-images.ts';

/** Encoded images by the SHA-256 of their files, so that a conversation does not encode its images with every turn. */
export interface ImageCache {
  get(key: string): EncodedImage | null;
  set(key: string, image: EncodedImage): void;
}

const MAX_BYTES = 64 * 2 ** 20;

/** Drops the least recently used images above `maxBytes`. */
export function createImageCache(maxBytes = MAX_BYTES): ImageCache {
  const images = new Map<string, EncodedImage>();
  let sizeBytes = 0;
  return {
    get(key) {
      const image = images.get(key);
      if (image === undefined) return null;
      images.delete(key); // a Map iterates in insertion order
      images.set(key, image);
      return image;
    },
    set(key, image) {
      if (!images.has(key)) sizeBytes += image.values.byteLength;
      images.set(key, image);
      for (const [oldest, { values }] of images) {
        if (sizeBytes <= maxBytes) return;
        images.delete(oldest);
        sizeBytes -= values.byteLength;
      }
    },
  };
}
