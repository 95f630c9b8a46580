import type { MethodList } from '../../core/remote-calls.ts';
import { clusterWhole } from '../reasoning-bank/k-means.ts';
import { createRerankWork } from '../rerank-training/train-rerank.ts';
import { runStepsWithPauses, type Sha256 } from '../router/index.ts';
import { trainRouterSteps } from '../router-training/train-router.ts';
import { createAdapterWork, type OpenTrainingModel } from './adapter-work.ts';
import { createInstantLearner } from './instant-step.ts';
import type { LearningWork } from './types.ts';

export const WORK_METHODS: MethodList<LearningWork> = {
  instant: true,
  forgetInstant: true,
  train: true,
  cancel: true,
  losses: true,
  logps: true,
  partOf: true,
  fisher: true,
  layoutSize: true,
  factorsOf: true,
  mergeDeltas: true,
  cluster: true,
  trainRouter: true,
  trainReranker: true,
  release: true,
};

/** All computations in one object, for the learning thread or for tests. */
export function createLearningWork(open: OpenTrainingModel, now: () => number, sha256: Sha256): LearningWork {
  const instant = createInstantLearner(now);
  const adapters = createAdapterWork(open, now);
  const rerank = createRerankWork(now);
  let routers = new AbortController();
  return {
    ...adapters,
    async cancel() {
      rerank.cancelRerank();
      routers.abort();
      routers = new AbortController();
      await adapters.cancel();
    },
    instant: async (job) => instant.step(job),
    forgetInstant: async (key) => instant.forget(key),
    cluster: async (vectors, plan) => clusterWhole(vectors, plan),
    trainRouter: (job) =>
      runStepsWithPauses(trainRouterSteps(job, sha256), { signal: routers.signal, now, what: 'training of a router' }),
    trainReranker: (job) => rerank.trainReranker(job),
  };
}
