import {
  createRouterTrainer,
  type PeerEvidence,
  type RouterPlan,
  type RouteVectors,
  type RouterTrainer,
} from '../../learning/router-training/router-trainer.ts';
import { routerPointer } from '../../learning/router-training/router-line.ts';
import { createFloatBlobs } from '../../learning/versions/blobs.ts';
import { createVersionLog } from '../../learning/versions/version-log.ts';
import { createTrajectories } from '../../learning/trajectories/trajectories.ts';
import type { LearningWork } from '../../learning/sona/types.ts';
import type { Memory } from '../../memory/memory.ts';
import type { LearningPart } from '../learning/learning-part.ts';
import type { RouteConfig } from './route-config.ts';
import type { Routing } from './types.ts';

/** The candidate that answered: from the route, otherwise by its model. */
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

/** `config` null: as with the default timeout. */
export function vectorsOf(memory: Memory, config: RouteConfig | null): RouteVectors | null {
  const space = memory.spaces.texts;
  if (space === null || config?.encoderTimeoutMs === 0) return null;
  return { space, embed: async (text) => (await memory.embed(text))?.vector ?? null, now: () => performance.now() };
}

/** Trains the routers of recent tenants. */
export function createRouterLoop(
  memory: Memory,
  routing: Routing,
  work: Pick<LearningWork, 'trainRouter' | 'cancel'>,
  peers: PeerEvidence | null = null,
): RouterTrainer & LearningPart {
  const { store, services } = memory;
  const trainer = createRouterTrainer({
    store,
    trajectories: createTrajectories(store, services),
    versions: createVersionLog(
      store,
      services,
      routerPointer(() => memory.policies),
    ),
    blobs: createFloatBlobs(store, services),
    work,
    plan: planOf(routing.config),
    vectors: vectorsOf(memory, routing.config),
    peers,
  });
  memory.erasure.register({
    name: 'router training',
    /** Waits for a training in progress, which would still write; this one stops before it starts. */
    async erase({ tenant }) {
      await trainer.train(tenant, 'operator', { signal: AbortSignal.abort() }).catch(() => {});
    },
    count: async () => 0,
  });
  return {
    name: 'routing',
    ...trainer,
    async run(signal) {
      const failed: unknown[] = [];
      for (const tenant of routing.tenants()) {
        if (signal?.aborted) break;
        // A failure for one tenant must not stop the others.
        await trainer.maybeTrain(tenant, { signal }).catch((error: unknown) => failed.push(error));
      }
      if (failed.length > 0) throw failed[0];
    },
  };
}
