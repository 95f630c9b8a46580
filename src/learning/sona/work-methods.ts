import type { MethodList } from '../../core/remote-calls.ts';
import { clusterWhole } from '../reasoning-bank/k-means.ts';
import { createRerankWork } from '../rerank-training/train-rerank.ts';
import type { Sha256 } from '../router/index.ts';
import { trainRouter } from '../router-training/train-router.ts';
import { createAdapterWork, type OpenTrainingModel } from './adapter-work.ts';
import { createInstantLearner } from './instant-step.ts';
import type { LearningWork } from './types.ts';

export const WORK_METHODS: MethodList<LearningWork> = {
  instant: true,
  forgetInstant: true,
  train: true,
  cancel: true,
  shadow: true,
  partOf: true,
  fisher: true,
  factorsOf: true,
  cluster: true,
  trainRouter: true,
  trainReranker: true,
  release: true,
};

/** Everything that computes, in one object: for a thread, or for tests without one. */
export function createLearningWork(open: OpenTrainingModel, now: () => number, sha256: Sha256): LearningWork {
  const instant = createInstantLearner(now);
  const adapters = createAdapterWork(open);
  const rerank = createRerankWork(now);
  return {
    ...adapters,
    async cancel() {
      rerank.cancelRerank();
      await adapters.cancel();
    },
    instant: async (job) => instant.step(job),
    forgetInstant: async (key) => instant.forget(key),
    cluster: async (vectors, plan) => clusterWhole(vectors, plan),
    trainRouter: async (job) => trainRouter(job, sha256),
    trainReranker: (job) => rerank.trainReranker(job),
  };
}
