import { Worker } from 'node:worker_threads';
import { RuvLLMError } from '../../core/errors.ts';
import type { SamplerAnswer, SpawnSamplerThread } from '../../engine/slow-grammars/types.ts';
import { startComputeDeadline } from '../../platform/node/process/compute-deadline.ts';

/** Heap of the thread: a grammar may take 64 MB, and a few of them are cached. */
const MEMORY_MB = 384;
/** Compute time of one token, with the compilation of its grammar; the limits of grammars are far below. */
const DEADLINE_MS = 10_000;

/** Starts the thread that samples under slow grammars. */
export const spawnSamplers: SpawnSamplerThread = ({ onAnswer, onLoss }) => {
  const worker = new Worker(new URL('./sampler-worker.js', import.meta.url), {
    name: 'ruvllm-samplers',
    execArgv: [],
    resourceLimits: { maxOldGenerationSizeMb: MEMORY_MB, stackSizeMb: 4 },
  });
  worker.unref(); // the engine keeps its thread alive
  let numAsked = 0;
  let cancelDeadline = (): void => {};

  function lose(error: Error): void {
    cancelDeadline();
    onLoss(error);
    void worker.terminate();
  }

  /** Restarts with every answer: the thread works on one token at a time. */
  function watch(): void {
    cancelDeadline();
    if (numAsked === 0) return;
    cancelDeadline = startComputeDeadline(DEADLINE_MS, () => {
      const message = `grammar: a token takes longer than ${DEADLINE_MS} ms`;
      lose(new RuvLLMError('unsupported', message, { data: { reason: 'deadline', limit: DEADLINE_MS } }));
    });
  }

  worker.on('message', (answer: SamplerAnswer) => {
    numAsked--;
    watch();
    onAnswer(answer);
  });
  worker.on('error', (error: Error & { code?: string }) => {
    if (error.code !== 'ERR_WORKER_OUT_OF_MEMORY') return lose(error);
    const message = `grammar: its tokens take more than ${MEMORY_MB} MB`;
    lose(new RuvLLMError('unsupported', message, { cause: error, data: { reason: 'memory', limit: MEMORY_MB } }));
  });
  worker.on('exit', (exitCode) => lose(new RuvLLMError('internal', `the sampler thread exited with code ${exitCode}`)));
  return {
    post(task) {
      worker.postMessage(task, task.type === 'sample' ? [task.logits.buffer] : []);
      if (task.type !== 'sample') return;
      numAsked++;
      if (numAsked === 1) watch();
    },
    async dispose() {
      cancelDeadline();
      worker.removeAllListeners();
      await worker.terminate();
    },
  };
};
