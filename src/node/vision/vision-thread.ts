import { createHash } from 'node:crypto';
import { Worker } from 'node:worker_threads';
import { RuvLLMError } from '../../core/errors.ts';
import type { KernelChoice } from '../../kernels/contract.ts';
import { openModelFile } from '../../platform/node/files/open-model-file.ts';
import { createSizingFactory } from '../../platform/node/kernels/sizing-factory.ts';
import { createTaskThread, type TaskThreadOptions } from '../../platform/node/threads/task-thread.ts';
import { createImageCache } from '../../runtime/image-cache.ts';
import type { VisionOptions } from '../../runtime/load-model.ts';
import type { EncodedImage, Vision } from '../../runtime/prompt-images.ts';
import { checkProjector } from '../../vision/check-model.ts';
import { readImageHeader } from '../../vision/image-header.ts';
import { planVision } from '../../vision/open-encoder.ts';

/** The input of the worker. */
export interface VisionWorkerData {
  readonly path: string;
  readonly kernels: KernelChoice;
  readonly numThreads: number;
}

/** A large encoder on a slow machine, with loading. */
const DEADLINE_MS = 300_000;
const MAX_WAITING = 256;
/** The weights are freed after this time without images. */
const IDLE_MS = 300_000;

function spawnWorker(workerData: VisionWorkerData): Worker {
  return new Worker(new URL('./vision-worker.js', import.meta.url), {
    name: 'ruvllm-vision',
    execArgv: [],
    workerData,
  });
}

/** Checks a projector now and starts its thread with the first image. */
export function openVisionThread(
  path: string,
  { kernels, numThreads, embeddingDim, tokenizer }: VisionOptions,
  options: Partial<TaskThreadOptions> = {},
): Vision {
  const gguf = openModelFile(path);
  let shape;
  try {
    ({ shape } = planVision(gguf, createSizingFactory(kernels)));
    checkProjector(shape, { embeddingDim, idOf: (spelling) => tokenizer.idOf(spelling) });
  } finally {
    gguf.source.close();
  }
  const thread = createTaskThread<Uint8Array, EncodedImage>({
    name: 'the image encoder',
    spawn: () => spawnWorker({ path, kernels, numThreads }),
    deadlineMs: DEADLINE_MS,
    maxWaiting: MAX_WAITING,
    idleMs: IDLE_MS,
    ...options,
  });
  const cache = createImageCache();
  const { before, placeholder, after } = shape.family;
  return {
    prompt: { before, placeholder, after, numTokens: shape.numTokens },
    async encode(data, signal, tenant) {
      readImageHeader(data);
      const key = createHash('sha256').update(data).digest('hex');
      const cached = cache.get(key);
      if (cached !== null) return cached;
      const encoded = await thread.run(data, signal, tenant);
      if (encoded === null) throw new RuvLLMError('kernel_failed', 'the image encoder could not be started');
      cache.set(key, encoded);
      return encoded;
    },
    dispose: () => thread.dispose(),
  };
}
