// A node with a router trainer, a key and peers, all in this process.
import { generateKeyPairSync, sign, createPublicKey, verify } from 'node:crypto';
import { createRandom } from '../../core/random.ts';
import { toHex } from '../../memory/common/ids.ts';
import { confidenceOf, patternToRecord } from '../reasoning-bank/pattern.ts';
import { verdictOf } from '../trajectories/verdict.ts';
import { collectRoutes } from '../router-training/collect-routes.ts';
import { createTrainerHarness, TRAINED_PLAN } from '../router-training/harness.contract.ts';
import { getRouterText, ROUTER_LINE } from '../router-training/router-line.ts';
import { trainRouter } from '../router-training/train-router.ts';
import { loadRouter } from '../router/index.ts';
import { sumsAndLetters } from '../router/test-examples.contract.ts';
import type { FillRandom } from './privacy/random-integers.ts';
import type { BundleSigner } from './bundle.ts';
import { createFederation, type Federation, type PeerTrust, type TrustedPeer } from './federation.ts';

export function createTestSigner(): BundleSigner {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519');
  const keyText = Buffer.from(publicKey.export({ format: 'jwk' }).x!, 'base64url').toString('base64');
  return {
    publicKey: () => keyText,
    sign: (bytes) => sign(null, bytes, privateKey).toString('base64'),
    isSignedBy(key, bytes, signature) {
      const x = Buffer.from(key, 'base64').toString('base64url');
      const from = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' });
      return verify(null, bytes, from, Buffer.from(signature, 'base64'));
    },
  };
}

export function createTestTrust(): PeerTrust {
  const peers = new Map<string, TrustedPeer[]>();
  const list = (tenant: string): TrustedPeer[] => peers.get(tenant) ?? [];
  return {
    list,
    add: (tenant, peer) => void peers.set(tenant, [...list(tenant).filter(({ key }) => key !== peer.key), peer]),
    remove: (tenant, key) => void peers.set(tenant, list(tenant).filter((one) => one.key !== key)), // prettier-ignore
  };
}

const letters = createRandom(9);
/** Without common pieces of words. */
const TOPICS = Array.from({ length: 130 }, () =>
  Array.from({ length: 7 }, () => String.fromCharCode(97 + Math.floor(letters.next() * 26))).join(''),
);

export function createTestNode(fillRandom?: FillRandom) {
  const signer = createTestSigner();
  let federation!: Federation;
  const harness = createTrainerHarness(
    (sha256) => ({
      trainRouter: async (job) => structuredClone(trainRouter(structuredClone(job), sha256)),
      cancel: async () => {},
    }),
    null,
    ({ store, services, trajectories }) => {
      const candidates = TRAINED_PLAN.candidates.map(({ id }) => id);
      const own = {
        async collect(tenant: string, { isWhole = false } = {}) {
          const routes = await collectRoutes(trajectories, tenant, {
            limit: isWhole ? Infinity : 1000,
            candidateOf: TRAINED_PLAN.candidateOf,
          });
          return { examples: routes.map(({ example }) => example), space: null, vectorMs: 0, candidates };
        },
      };
      // The content of a file is its name.
      const hashModel = (path: string): string => toHex(services.sha256(new TextEncoder().encode(path)));
      federation = createFederation({ store, services, signer, trust: createTestTrust(), own, hashModel, ...(fillRandom === undefined ? {} : { fillRandom }) }); // prettier-ignore
      return federation;
    },
  );
  const { rate, blobs, versions, services } = harness;
  async function countRight(tenant: string, asked: readonly { query: string; right: number }[]): Promise<number> {
    const text = await getRouterText(blobs, tenant, await versions.active(tenant, ROUTER_LINE));
    const router = text === null ? null : loadRouter(text, services.sha256);
    return asked.filter(({ query, right }) => {
      const chosen = router === null ? 0 : router.policy.decide(router.encoder.encode({ turns: [query] })).candidate;
      return chosen === right;
    }).length;
  }
  return {
    ...harness,
    signer,
    /** A pattern of the bank, made of `count` requests with this mean quality. */
    async addPattern(
      vector: readonly number[],
      mean: number,
      { count = 10, variance = 0.01, text = 'Asked: secret', space = 'space-1', tenant = 'acme' } = {},
    ): Promise<string> {
      const id = services.newId();
      const quality = { count, mean, variance };
      const figures = { verdict: verdictOf(mean), support: count, confidence: confidenceOf(quality), quality, models: {} }; // prettier-ignore
      const uses = { numUses: 0, lastUsedMs: services.timeMs, recommendedModel: null };
      const pattern = { id, text, embedding: Float32Array.from(vector), space, ...figures, ...uses };
      await harness.store.put([patternToRecord(pattern, tenant)]);
      return id;
    },

    federation,
    /** Sums that only the large one can do, and letters that only the small one can; `isLying` turns all ratings around. */
    async collect(count: number, seed: number, { isLying = false, tenant = 'acme' } = {}): Promise<void> {
      for (const [i, { text, isHard }] of sumsAndLetters(count, seed).entries()) {
        const model = (i + seed) % 2 === 0 ? 'small' : 'large';
        const isRight = (model === 'large') === isHard;
        await rate(tenant, { model, query: text, score: isRight !== isLying ? 1 : 0 });
      }
    },
    /** Requests about many topics, of which each candidate knows half: a few ratings say nothing about most of them. */
    async collectTopics(count: number, seed: number): Promise<void> {
      const random = createRandom(seed);
      for (let i = 0; i < count; i++) {
        const topic = Math.floor(random.next() * TOPICS.length);
        const model = random.next() < 0.5 ? 'small' : 'large';
        const query = `tell me of ${TOPICS[topic]!}`;
        await rate('acme', { model, query, score: (model === 'large') === topic < TOPICS.length / 2 ? 1 : 0 });
      }
    },
    /** Of a hundred requests, how many go to the right candidate. */
    numRight: (tenant = 'acme') =>
      countRight(tenant, sumsAndLetters(100, 77).map(({ text, isHard }) => ({ query: text, right: +isHard }))), // prettier-ignore
    /** Of all topics. */
    numTopicsRight: () =>
      countRight('acme', TOPICS.map((topic, i) => ({ query: `tell me of ${topic}`, right: +(i < TOPICS.length / 2) }))), // prettier-ignore
  };
}
