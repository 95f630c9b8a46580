import { assert, RuvLLMError } from '../core/errors.ts';
import type { KvCache } from '../kv-cache/kv-cache.ts';
import type { StepVectors } from '../models/types.ts';
import type { EngineRequest, ScheduledRows } from './types.ts';

type Prompt = Pick<EngineRequest, 'promptIds' | 'images'>;

/** Rejects images whose rows do not fit the model, overlap or leave the prompt. */
export function checkImages({ promptIds, images = [], pooling }: EngineRequest, embeddingDim: number): void {
  assert(images.length === 0 || pooling === undefined, 'an embedding of images');
  let end = 0;
  for (const { start, numRows, values } of images) {
    if (!(numRows >= 1) || values.length !== numRows * embeddingDim) {
      const message = `an image has ${values.length} values, the model requires ${numRows} rows of ${embeddingDim}`;
      throw new RuvLLMError('invalid_option', message, { data: { numValues: values.length, embeddingDim } });
    }
    assert(Number.isInteger(start) && start >= end && start + numRows <= promptIds.length, `an image at ${start}`);
    end = start + numRows;
  }
}

/** The prompt as the prefix cache sees it: every row of an image has the image's key. */
export function keysOf({ promptIds, images = [] }: Prompt, { images: keys }: Pick<KvCache, 'images'>): number[] {
  const cacheKeys = [...promptIds];
  for (const { start, numRows, hash } of images) cacheKeys.fill(keys.keyOf(hash), start, start + numRows);
  return cacheKeys;
}

/** The vectors of those rows of a step that belong to images; `firstRow` is the first row of the sequence in the step. */
export function vectorsOf(
  { images = [] }: Pick<Prompt, 'images'>,
  { start, numRows }: Pick<ScheduledRows, 'start' | 'numRows'>,
  firstRow: number,
): StepVectors[] {
  return images.flatMap((image) => {
    const from = Math.max(start, image.start);
    const to = Math.min(start + numRows, image.start + image.numRows);
    if (from >= to) return [];
    const dim = image.values.length / image.numRows;
    const values = image.values.subarray((from - image.start) * dim, (to - image.start) * dim);
    return [{ firstRow: firstRow + from - start, values }];
  });
}
