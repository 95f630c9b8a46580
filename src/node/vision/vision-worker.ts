// A thread that decodes and encodes images; started, and ended when idle, by vision-thread.ts.
import { createHash } from 'node:crypto';
import { parentPort, workerData } from 'node:worker_threads';
import { assert, serializeError } from '../../core/errors.ts';
import { openModelFile } from '../../platform/node/files/open-model-file.ts';
import { createKernelFactory } from '../../platform/node/kernels/kernel-factory.ts';
import type { TaskAnswer } from '../../platform/node/threads/task-thread.ts';
import type { EncodedImage } from '../../runtime/prompt-images.ts';
import { openVisionEncoder, type VisionEncoder } from '../../vision/open-encoder.ts';
import { prepareImage } from '../../vision/prepare-image.ts';
import type { VisionWorkerData } from './vision-thread.ts';

const port = parentPort;
assert(port !== null, 'vision-worker runs as a worker thread');
const { path, kernels, numThreads } = workerData as VisionWorkerData;

async function open(): Promise<VisionEncoder> {
  const gguf = openModelFile(path);
  try {
    const types = [
      ...new Set([...gguf.tensors.values()].filter(({ dims }) => dims.length > 1).map(({ type }) => type)),
    ];
    const warn = ({ message, code }: { message: string; code: string }): void => process.emitWarning(message, { code });
    return await openVisionEncoder(gguf, await createKernelFactory(kernels, { numThreads, types, warn }), {
      numThreads,
    });
  } finally {
    gguf.source.close();
  }
}

let encoder: Promise<VisionEncoder> | null = null;

async function answer(file: Uint8Array): Promise<TaskAnswer<EncodedImage>> {
  try {
    encoder ??= open();
    const { shape, encode } = await encoder;
    const values = await encode(await prepareImage(file, shape));
    return { result: { values, hash: createHash('sha256').update(values).digest('hex') } };
  } catch (error) {
    return { error: serializeError(error) };
  }
}

port.on('message', (file: Uint8Array) => void answer(file).then((answered) => port.postMessage(answered)));
port.postMessage('ready');
