// A router trainer on a test store, shared by the tests of both threads.
import type { Sha256 } from '../../memory/common/services.ts';
import { createPolicyMemory } from '../../memory/policies/policies.ts';
import { createTestServices, createTestStore, type TestServices } from '../../memory/test-store.contract.ts';
import { candidate, FREE } from '../router/test-examples.contract.ts';
import { trajectoryFixture } from '../trajectories/harness.contract.ts';
import { createTrajectories } from '../trajectories/trajectories.ts';
import { createFloatBlobs } from '../versions/blobs.ts';
import { createVersionLog } from '../versions/version-log.ts';
import { routerPointer } from './router-line.ts';
import {
  createRouterTrainer,
  type PeerEvidence,
  type RouterTrainerContext,
  type RouteVectors,
} from './router-trainer.ts';
import type { RouterJob } from './train-router.ts';

export const TRAINED_CANDIDATES = [candidate('small'), candidate('large')];
export const TRAINED_PLAN = {
  candidates: TRAINED_CANDIDATES,
  weights: FREE,
  safeDefault: 0,
  minConfidence: 0.7,
  candidateOf: ({ model }: { model: string }) => TRAINED_CANDIDATES.findIndex(({ id }) => id === model),
};

export interface RatedRequest {
  readonly model: string;
  readonly query: string;
  readonly score: number;
  readonly sessionId?: string | null;
  readonly target?: 'answer' | 'route';
}

/** `openWork` trains; `jobs` lists what it was asked for. */
export function createTrainerHarness(
  openWork: (sha256: Sha256) => RouterTrainerContext['work'],
  vectors: RouteVectors | null = null,
  openPeers: (
    shared: Pick<RouterTrainerContext, 'store' | 'trajectories'> & { services: TestServices },
  ) => PeerEvidence | null = () => null,
) {
  const services = createTestServices();
  const store = createTestStore(services);
  const trajectories = createTrajectories(store, services);
  const policies = createPolicyMemory(store, services);
  const versions = createVersionLog(
    store,
    services,
    routerPointer(() => policies),
  );
  const blobs = createFloatBlobs(store, services);
  const jobs: RouterJob[] = [];
  const inner = openWork(services.sha256);
  const work: RouterTrainerContext['work'] = {
    ...inner,
    trainRouter(job, ...rest) {
      jobs.push(structuredClone(job));
      return inner.trainRouter(job, ...rest);
    },
  };
  const peers = openPeers({ store, trajectories, services });
  const trainer = createRouterTrainer({
    store,
    trajectories,
    versions,
    blobs,
    work,
    plan: TRAINED_PLAN,
    vectors,
    peers,
  });
  let count = 0;
  /** Stores a request with its rating; returns its id. */
  async function rate(
    tenant: string,
    { score, sessionId = null, target = 'answer', ...request }: RatedRequest,
  ): Promise<string> {
    const one = trajectoryFixture(++count, { ...request, sessionId, prompt: null, embedding: null, space: null });
    await trajectories.add(tenant, one);
    await trajectories.rate(tenant, { requestId: one.requestId, score, target });
    return one.requestId;
  }
  return { services, store, versions, blobs, policies, trainer, jobs, rate, numRated: () => count };
}
