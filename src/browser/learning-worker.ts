// Computes learning steps and trains adapters; it holds a model's weights only while a loop runs. Started by open-learning.ts.
import { sha256 } from '../core/sha256.ts';
import { openGguf } from '../gguf/reader.ts';
import { createTrainingModel } from '../learning/lora-training/training-model.ts';
import { createLearningWork, WORK_METHODS } from '../learning/sona/work-methods.ts';
import { createBlobSource } from '../platform/browser/files/blob-source.ts';
import { openStoredFile } from '../platform/browser/files/model-folder.ts';
import { serveWorkerCalls } from '../platform/browser/threads/worker-calls.ts';
import { createKernelFactory } from './kernel-factory.ts';

serveWorkerCalls(
  createLearningWork(
    async ({ path, rank, numLayers, maxTokens }) => {
      const gguf = openGguf(createBlobSource(await openStoredFile(path), path));
      return createTrainingModel(gguf, await createKernelFactory('auto'), { rank, numLayers, maxTokens });
    },
    () => performance.now(),
    sha256,
  ),
  WORK_METHODS,
);
