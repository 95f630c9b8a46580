// The thread that learns: it has the weights of a model only while a loop runs.
import { createHash } from 'node:crypto';
import { parentPort } from 'node:worker_threads';
import { assert } from '../../../core/errors.ts';
import { type RemoteCall, serveCalls } from '../../../core/remote-calls.ts';
import { createTrainingModel } from '../../../learning/lora-training/training-model.ts';
import type { AdapterPlan } from '../../../learning/sona/types.ts';
import { createLearningWork, WORK_METHODS } from '../../../learning/sona/work-methods.ts';
import { createKernelFactory } from '../kernel-factory.ts';
import { openModelFile } from '../open-model-file.ts';

const port = parentPort;
assert(port !== null, 'learning-worker runs in a thread');

async function open({ path, rank, numLayers, maxTokens }: AdapterPlan) {
  const gguf = openModelFile(path);
  try {
    const types = [...new Set([...gguf.tensors.values()].map(({ type }) => type))];
    const kernels = await createKernelFactory('auto', { numThreads: 1, types, warn: () => {} });
    return await createTrainingModel(gguf, kernels, { rank, numLayers, maxTokens });
  } finally {
    gguf.source.close();
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
