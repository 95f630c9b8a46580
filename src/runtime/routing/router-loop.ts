import {
  createRouterTrainer,
  type RouterPlan,
  type RouterTrainer,
} from '../../learning/router-training/router-trainer.ts';
import { createFloatBlobs } from '../../learning/versions/blobs.ts';
import { createVersionLog } from '../../learning/versions/version-log.ts';
import { createTrajectories } from '../../learning/trajectories/trajectories.ts';
import type { LearningWork } from '../../learning/sona/types.ts';
import type { Memory } from '../../memory/memory.ts';
import type { LearningPart } from '../learning/learning-part.ts';
import type { RouteConfig } from './route-config.ts';
import type { Routing } from './types.ts';

/** Which candidate answered: as the router noted it, else the one whose model it was. */
export function planOf({ candidates, priced, weights, safeDefault, minConfidence }: RouteConfig): RouterPlan {
  const ids = new Map(candidates.map(({ id }, i) => [id, i]));
  const models = new Map(candidates.flatMap((one, i) => (one.kind === 'local' ? [[one.model, i] as const] : [])));
  return {
    candidates: priced,
    weights,
    safeDefault,
    minConfidence,
    candidateOf: ({ route, model }) => (route === undefined ? models.get(model) : ids.get(route.candidate)) ?? -1,
  };
}

/** Trains the routers of those who were here, and puts them to use at once. */
export function createRouterLoop(
  memory: Memory,
  routing: Routing,
  work: Pick<LearningWork, 'trainRouter' | 'cancel'>,
): RouterTrainer & LearningPart {
  // prettier-ignore
  const { store, services } = memory;
  const trainer = createRouterTrainer({
    store,
    services,
    trajectories: createTrajectories(store, services),
    versions: createVersionLog(store, services),
    blobs: createFloatBlobs(store, services),
    policies: () => memory.policies,
    work,
    plan: planOf(routing.config),
  });
  const train: RouterTrainer['train'] = async (tenant, loop, control) => {
    const report = await trainer.train(tenant, loop, control);
    if (report.version?.isAccepted) routing.reload(tenant);
    return report;
  };
  const maybeTrain: RouterTrainer['maybeTrain'] = async (tenant, control) => {
    const report = await trainer.maybeTrain(tenant, control);
    if (report?.version?.isAccepted) routing.reload(tenant);
    return report;
  };
  return {
    name: 'routing',
    train,
    maybeTrain,
    async run(signal) {
      const failed: unknown[] = [];
      for (const tenant of routing.tenants()) {
        if (signal?.aborted) break;
        // What fails for one tenant is no reason that others never learn.
        await maybeTrain(tenant, { signal }).catch((error: unknown) => failed.push(error));
      }
      if (failed.length > 0) throw failed[0];
    },
  };
}
