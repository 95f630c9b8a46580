// Decodes and encodes images with the projector of a model; started by open-vision.ts with the first image.
import { sha256, toHex } from '../core/sha256.ts';
import { openGguf } from '../gguf/reader.ts';
import { createBlobSource } from '../platform/browser/files/blob-source.ts';
import { openStoredFile } from '../platform/browser/files/model-folder.ts';
import { serveWorkerCalls } from '../platform/browser/threads/worker-calls.ts';
import { openVisionEncoder, type VisionEncoder } from '../vision/open-encoder.ts';
import { prepareImage } from '../vision/prepare-image.ts';
import { createKernelFactory } from './kernel-factory.ts';
import { VISION_METHODS, type VisionPlan, type VisionWork } from './open-vision.ts';

let opening: Promise<VisionEncoder> | null = null;
/** One image at a time: they share the buffers of the encoder. */
let last: Promise<unknown> = Promise.resolve();

async function open({ name, kernels, numThreads }: VisionPlan): Promise<VisionEncoder> {
  const gguf = openGguf(createBlobSource(await openStoredFile(name), name));
  return openVisionEncoder(gguf, await createKernelFactory(kernels), { numThreads });
}

const work: VisionWork = {
  encode(plan, file) {
    const turn = last.then(async () => {
      const { shape, encode } = await (opening ??= open(plan));
      const values = await encode(await prepareImage(file, shape));
      return { values, hash: toHex(sha256(new Uint8Array(values.buffer, values.byteOffset, values.byteLength))) };
    });
    last = turn.catch(() => {});
    return turn;
  },
};

serveWorkerCalls(work, VISION_METHODS);
