import { readFileSync } from 'node:fs';
import type { MessageImage } from '../chat/types.ts';
import { messageOf, RuvLLMError } from '../core/errors.ts';
import { readImageHeader } from '../vision/image-header.ts';
import { IMAGE_LIMITS } from '../vision/image-limits.ts';
import type { FlagValues } from './flags.ts';
import { usageError } from './usage-error.ts';
import { requireRegularFile } from '../platform/node/files/regular-file.ts';

/** The files of `--image`, before the text of the prompt; checked before a model is loaded. */
export function readImages(values: FlagValues): readonly MessageImage[] {
  const paths = (values['--image'] as readonly string[] | undefined) ?? [];
  return paths.map((path) => ({ offset: 0, data: readImageFile(path) }));
}

function readImageFile(path: string): Uint8Array {
  try {
    const size = requireRegularFile(path, '--image cannot be read:');
    if (size > IMAGE_LIMITS.maxBytes) {
      throw usageError(`--image ${path} has ${size} bytes; the limit is ${IMAGE_LIMITS.maxBytes}`, '--image');
    }
    const data = new Uint8Array(readFileSync(path));
    readImageHeader(data);
    return data;
  } catch (error) {
    if (error instanceof RuvLLMError) throw error;
    const reason = messageOf(error);
    throw usageError(`--image cannot be read: ${reason}`, '--image');
  }
}
