import { requireCapabilities } from '../platform/browser/capabilities.ts';
import { connectWorker } from '../platform/browser/threads/worker-calls.ts';
import type { Learning } from '../runtime/learning/learning.ts';
import { openLearningOn, type OpenLearningOptions, openLearningWork } from '../runtime/learning/open-learning.ts';

const spawn = () =>
  connectWorker(
    new Worker(new URL('./learning-worker.js', import.meta.url), { type: 'module', name: 'ruvllm-learning' }),
  );

export function openBrowserLearning(options: OpenLearningOptions): Learning {
  requireCapabilities();
  const schedule = (task: () => void, delayMs: number) => {
    const timer = setTimeout(task, delayMs);
    return () => clearTimeout(timer);
  };
  const platform = {
    ...openLearningWork(spawn, schedule),
    schedule,
    warn: (message: string) => console.warn(`RuvLLM: ${message}`),
  };
  return openLearningOn(platform, options);
}
