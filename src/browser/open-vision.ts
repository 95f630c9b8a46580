import { raceAbort } from '../core/abort.ts';
import { createRemote, type MethodList, type Remote } from '../core/remote-calls.ts';
import { sha256, toHex } from '../core/sha256.ts';
import type { GgufFile } from '../gguf/types.ts';
import type { KernelChoice } from '../kernels/kernel-choice.ts';
import { connectWorker } from '../platform/browser/threads/worker-calls.ts';
import { createImageCache } from '../runtime/image-cache.ts';
import type { VisionOptions } from '../runtime/load-model.ts';
import type { EncodedImage, Vision } from '../runtime/prompt-images.ts';
import { checkProjector } from '../vision/check-model.ts';
import { readImageHeader } from '../vision/image-header.ts';
import { planVision } from '../vision/open-encoder.ts';

/** A projector and its resources; plain data, for a worker. */
export interface VisionPlan {
  /** Of the stored file. */
  readonly name: string;
  readonly kernels: KernelChoice;
  readonly numThreads: number;
}

/** The image encoder in its worker. */
export interface VisionWork {
  encode(plan: VisionPlan, file: Uint8Array): Promise<EncodedImage>;
}
export const VISION_METHODS: MethodList<VisionWork> = { encode: true };

/** The worker measures; the page only checks the shape. */
const NO_SIZES = { matrixBytes: () => 0 };

/** Everything that `openVision` reads of a projector. */
export const readProjector = (gguf: GgufFile): ReturnType<typeof planVision> => planVision(gguf, NO_SIZES);

const spawn = (): Remote<VisionWork> =>
  createRemote(
    connectWorker(
      new Worker(new URL('./vision-worker.js', import.meta.url), { type: 'module', name: 'ruvllm-vision' }),
    ),
    VISION_METHODS,
    { name: 'the image encoder' },
  );

/** Checks a projector now and starts its worker with the first image. */
export function openVision(
  name: string,
  gguf: GgufFile,
  { kernels, numThreads, embeddingDim, tokenizer }: VisionOptions,
): Vision {
  const { shape } = readProjector(gguf);
  checkProjector(shape, { embeddingDim, idOf: (spelling) => tokenizer.idOf(spelling) });
  const cache = createImageCache();
  const { before, placeholder, after } = shape.family;
  let remote: Remote<VisionWork> | null = null;
  return {
    prompt: { before, placeholder, after, numTokens: shape.numTokens },
    async encode(data, signal) {
      readImageHeader(data);
      const key = toHex(sha256(data));
      const cached = cache.get(key);
      if (cached !== null) return cached;
      if (remote === null || remote.hasEnded) remote = spawn();
      const encoding = remote.object.encode({ name, kernels, numThreads }, data);
      const encoded = await raceAbort(encoding, signal);
      cache.set(key, encoded);
      return encoded;
    },
    async dispose() {
      await remote?.end();
    },
  };
}
