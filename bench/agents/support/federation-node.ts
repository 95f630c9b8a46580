import { createHash, generateKeyPairSync, randomBytes } from 'node:crypto';
import type { Federation, TrustedPeer } from '../../../src/learning/federation/federation.ts';
import type { Router } from '../../../src/learning/router/index.ts';
import { importBuilt } from '../../support/dist.ts';

const { createUuidV7 } = await importBuilt<typeof import('../../../src/core/uuid.ts')>('core/uuid');
const { createFederation } = await importBuilt<typeof import('../../../src/learning/federation/federation.ts')>('learning/federation/federation'); // prettier-ignore
const { loadRouter } = await importBuilt<typeof import('../../../src/learning/router/index.ts')>('learning/router/index'); // prettier-ignore
const { collectRoutes } = await importBuilt<typeof import('../../../src/learning/router-training/collect-routes.ts')>('learning/router-training/collect-routes'); // prettier-ignore
const { getRouterText, ROUTER_LINE, routerPointer } = await importBuilt<typeof import('../../../src/learning/router-training/router-line.ts')>('learning/router-training/router-line'); // prettier-ignore
const { createRouterTrainer } = await importBuilt<typeof import('../../../src/learning/router-training/router-trainer.ts')>('learning/router-training/router-trainer'); // prettier-ignore
const { trainRouter } = await importBuilt<typeof import('../../../src/learning/router-training/train-router.ts')>('learning/router-training/train-router'); // prettier-ignore
const { createTrajectories } = await importBuilt<typeof import('../../../src/learning/trajectories/trajectories.ts')>('learning/trajectories/trajectories'); // prettier-ignore
const { createFloatBlobs } = await importBuilt<typeof import('../../../src/learning/versions/blobs.ts')>('learning/versions/blobs'); // prettier-ignore
const { createVersionLog } = await importBuilt<typeof import('../../../src/learning/versions/version-log.ts')>('learning/versions/version-log'); // prettier-ignore
const { createPolicyMemory } = await importBuilt<typeof import('../../../src/memory/policies/policies.ts')>('memory/policies/policies'); // prettier-ignore
const { createInMemoryStore } = await importBuilt<typeof import('../../../src/memory/store/in-memory/in-memory-store.ts')>('memory/store/in-memory/in-memory-store'); // prettier-ignore
const { isSignedBy, publicKeyText, signBytes } = await importBuilt<typeof import('../../../src/platform/node/signing/ed25519.ts')>('platform/node/signing/ed25519'); // prettier-ignore

const TENANT = 'bench';

/** A request that one desk answered, with its rating. */
export interface RatedText {
  readonly text: string;
  readonly desk: number;
  readonly quality: number;
}

/** A node with its own store, key and router: the code of users, in one process. */
export interface FederationNode {
  readonly key: string;
  readonly federation: Federation;
  rate(all: readonly RatedText[]): Promise<void>;
  trust(peer: TrustedPeer): Promise<void>;
  /** Trains with the gate; the router that then serves, null: the default desk. Also what became of the peers. */
  train(): Promise<{ readonly router: Router | null; readonly reason: string }>;
}

export function createFederationNode(desks: readonly string[]): FederationNode {
  let timeMs = Date.UTC(2026, 0, 1);
  const now = (): number => timeMs;
  const services = {
    now,
    newId: createUuidV7({ now, randomBytes }),
    sha256: (bytes: Uint8Array) => createHash('sha256').update(bytes).digest(),
  };
  const store = createInMemoryStore({ now });
  const trajectories = createTrajectories(store, services);
  const policies = createPolicyMemory(store, services);
  const versions = createVersionLog(store, services, routerPointer(() => policies)); // prettier-ignore
  const blobs = createFloatBlobs(store, services);
  const { privateKey } = generateKeyPairSync('ed25519');
  const key = publicKeyText(privateKey);
  const peers: TrustedPeer[] = [];
  const plan = {
    candidates: desks.map((id) => ({ id, kind: 'local' as const, pricePerToken: 0, latencyMs: 0 })),
    weights: { perSecond: 0, perCost: 0 },
    safeDefault: 0,
    minConfidence: 0,
    candidateOf: ({ route }: { route?: { candidate: string } | undefined }) => desks.indexOf(route?.candidate ?? ''),
  };
  const federation = createFederation({
    store,
    services,
    signer: { publicKey: () => key, sign: (bytes) => signBytes(privateKey, bytes), isSignedBy },
    trust: { list: () => peers, add: (_, peer) => void peers.push(peer), remove: () => {} },
    own: {
      async collect(tenant, { isWhole = false } = {}) {
        const routes = await collectRoutes(trajectories, tenant, { limit: isWhole ? Infinity : 1000, candidateOf: plan.candidateOf }); // prettier-ignore
        return { examples: routes.map(({ example }) => example), space: null, vectorMs: 0, candidates: desks };
      },
    },
  });
  const work = { trainRouter: async (job: Parameters<typeof trainRouter>[0]) => trainRouter(job, services.sha256), cancel: async () => {} }; // prettier-ignore
  const trainer = createRouterTrainer({ store, trajectories, versions, blobs, work, plan, peers: federation });
  return {
    key,
    federation,
    async rate(all) {
      for (const { text, desk, quality } of all) {
        timeMs++;
        await trajectories.add(TENANT, {
          requestId: services.newId(),
          sessionId: null,
          userId: null,
          model: desks[desk]!,
          createdMs: timeMs,
          query: text,
          prompt: null,
          answer: '',
          steps: [],
          parameters: { propensity: 1 / desks.length },
          route: { candidate: desks[desk]!, similarities: [], load: 0, latencyMs: [] },
          retrieved: [],
          quality,
          latencyMs: 0,
          numOutputTokens: 0,
          embedding: null,
          space: null,
        });
      }
    },
    trust: async (peer) => void (await federation.addPeer(TENANT, peer)),
    async train() {
      timeMs += 1000;
      const { reason } = await trainer.train(TENANT, 'operator');
      const text = await getRouterText(blobs, TENANT, await versions.active(TENANT, ROUTER_LINE));
      return { router: text === null ? null : loadRouter(text, services.sha256), reason };
    },
  };
}

/** Sends the bundle of each node to all others. */
export async function exchange(nodes: readonly FederationNode[]): Promise<void> {
  for (const [i, from] of nodes.entries()) {
    const bundle = JSON.parse(JSON.stringify(await from.federation.push(TENANT))) as unknown;
    for (const to of nodes) {
      if (to === from) continue;
      await to.trust({ key: from.key, name: `node-${i + 1}` });
      await to.federation.pull(TENANT, bundle);
    }
  }
}
