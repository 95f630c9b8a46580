// The learning thread; it holds a model's weights only while a loop runs.
import { createHash } from 'node:crypto';
import { parentPort } from 'node:worker_threads';
import { assert } from '../../core/errors.ts';
import { type RemoteCall, serveCalls } from '../../core/remote-calls.ts';
import { createTrainingModel } from '../../learning/lora-training/training-model.ts';
import type { TrainingModel } from '../../learning/lora-training/types.ts';
import type { AdapterPlan } from '../../learning/sona/types.ts';
import { createLearningWork, WORK_METHODS } from '../../learning/sona/work-methods.ts';
import { createKernelFactory } from '../../platform/node/kernels/kernel-factory.ts';
import { openModelFile } from '../../platform/node/files/open-model-file.ts';

const port = parentPort;
assert(port !== null, 'learning-worker runs in a thread');

async function open({ path, rank, numLayers, maxTokens }: AdapterPlan): Promise<TrainingModel> {
  const gguf = openModelFile(path);
  try {
    const types = [...new Set([...gguf.tensors.values()].map(({ type }) => type))];
    const kernels = await createKernelFactory('auto', { numThreads: 1, types, warn: () => {} });
    const model = await createTrainingModel(gguf, kernels, { rank, numLayers, maxTokens });
    return {
      ...model,
      // Rows of the embedding table are read on demand, so the file stays open.
      async dispose() {
        await model.dispose();
        gguf.source.close();
      },
    };
  } catch (error) {
    gguf.source.close();
    throw error;
  }
}

const serve = serveCalls(
  createLearningWork(
    open,
    () => performance.now(),
    (bytes) => new Uint8Array(createHash('sha256').update(bytes).digest()),
  ),
  WORK_METHODS,
  (reply) => port.postMessage(reply),
);
port.on('message', (call: RemoteCall) => serve(call));
