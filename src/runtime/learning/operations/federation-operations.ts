import { z } from 'zod';
import { messageOf, RuvLLMError } from '../../../core/errors.ts';
import type { Federation, OwnAdapter, PackedAdapters, PrivacyBudget } from '../../../learning/federation/federation.ts';
import { notNoised } from '../../../learning/federation/privacy/private-routes.ts';
import { ADAPTER_PREFIX } from '../../../learning/sona/learned-adapter.ts';
import { forgetRouters } from '../../../learning/router-training/router-line.ts';
import { createFloatBlobs } from '../../../learning/versions/blobs.ts';
import { withoutUndefined } from '../../../memory/common/store-access.ts';
import { text } from '../../../memory/schemas/primitives.ts';
import type { LearningControl } from './control.ts';
import { defineLearning, type LearningOperation } from './define.ts';

const DAY_MS = 86_400_000;
const key = text(64, 1);

function federationOf({ federation }: LearningControl): Federation {
  if (federation !== null) return federation;
  throw new RuvLLMError('unsupported', 'federation requires a node with a key of its own; this one has none');
}

const status = defineLearning({
  name: 'federate.status',
  summary: "The node's public key, the tenant's peers with the state of their bundles, and what was sent.",
  input: z.strictObject({}),
  run: async (control, tenant) => ({ ...(await federationOf(control).status(tenant)) }),
});

const addPeer = defineLearning({
  name: 'federate.add-peer',
  summary: 'Trusts the bundles of a public key (Ed25519, base64) for the tenant.',
  input: z.strictObject({ key, name: text(64, 1) }),
  run: async (control, tenant, peer) => ({ ...(await federationOf(control).addPeer(tenant, peer)) }),
});

const removePeer = defineLearning({
  name: 'federate.remove-peer',
  summary:
    'Removes a peer by key or name, deletes what it sent, and withdraws routers trained on it and adapters merged with its own.',
  input: z.strictObject({ peer: text(64, 1) }),
  async run(control, tenant, { peer }) {
    const { id, ...removed } = await federationOf(control).removePeer(tenant, peer);
    const { memory, learning } = control;
    const blobs = createFloatBlobs(memory.store, memory.services);
    const context = { versions: learning.sona.versions, blobs, policies: () => memory.policies };
    const routers = await forgetRouters(context, tenant, new Set([id]));
    return { ...removed, withdrawn: [...routers, ...(await learning.sona.withdrawPeers(tenant, [id]))] };
  },
});

const setPrivacy = defineLearning({
  name: 'federate.set-privacy',
  summary:
    'Limits how much of a conversation the bundles of the tenant reveal: differential privacy with this epsilon over all pushes. `budget` null: bundles are not noised. Spent budget stays spent.',
  input: z.strictObject({
    budget: z
      .strictObject({ epsilon: z.number(), delta: z.number().optional(), epsilonPerPush: z.number().optional() })
      .nullable(),
  }),
  run: async (control, tenant, { budget }) => ({
    privacy: await federationOf(control).setPrivacy(
      tenant,
      budget === null ? null : (withoutUndefined(budget) as PrivacyBudget),
    ),
  }),
});

const push = defineLearning({
  name: 'federate.push',
  summary:
    "A signed bundle of the tenant's own rated requests, patterns and trained adapters, as numbers; with `texts` also texts. Adapters that are not in it are named with the reason. With a privacy budget: noised ratings alone.",
  input: z.strictObject({
    texts: z.boolean().default(false),
    terms: z.boolean().default(true),
    patterns: z.boolean().optional(),
    adapters: z.boolean().optional(),
    expiresDays: z.int().min(1).max(90).default(30),
  }),
  async run(control, tenant, { expiresDays, adapters: isSharing, ...share }) {
    const federation = federationOf(control);
    const isNoised = (await federation.status(tenant)).privacy !== null;
    if (isNoised && isSharing === true) throw notNoised('adapters');
    const { adapters, notShared } = (isSharing ?? !isNoised) ? await collectAdapters(control, federation, tenant) : NO_ADAPTERS; // prettier-ignore
    const lifetimeMs = expiresDays * DAY_MS;
    const bundle = await federation.push(tenant, { ...withoutUndefined(share), adapters, lifetimeMs });
    return { bundle, notShared, privacy: (await federation.status(tenant)).privacy };
  },
});

const NO_ADAPTERS: PackedAdapters = { adapters: [], notShared: [] };

/** The adapters of all models that can be opened here. */
async function collectAdapters(
  control: LearningControl,
  federation: Federation,
  tenant: string,
): Promise<PackedAdapters> {
  const { sona } = control.learning;
  const lines = (await sona.versions.lines(tenant)).filter((line) => line.startsWith(ADAPTER_PREFIX));
  const own: OwnAdapter[] = [];
  const notShared: { model: string; reason: string }[] = [];
  for (const model of lines.map((line) => line.slice(ADAPTER_PREFIX.length))) {
    try {
      const adapter = await control.withModel(model, (id) => sona.ownAdapter(tenant, id));
      if (adapter === null) notShared.push({ model, reason: 'no version that this node trained without peers' });
      else own.push(adapter);
    } catch (error) {
      // A model that is no longer served must not keep back everything else.
      notShared.push({ model, reason: messageOf(error) });
    }
  }
  const packed = federation.packAdapters(own);
  return { ...packed, notShared: [...notShared, ...packed.notShared] };
}

const pull = defineLearning({
  name: 'federate.pull',
  summary:
    'Checks and stores a bundle of a peer, without the parts for another embedder or model file. Patterns are found at once; routers and adapters serve if their gate accepts them. `mergeable` are models to which learn.run of federation applies.',
  input: z.strictObject({ bundle: z.record(z.string(), z.unknown()) }),
  async run(control, tenant, { bundle }) {
    const { learning, memory } = control;
    const federation = federationOf(control);
    const receiver = { space: memory.spaces.requests, pathOf: (model: string) => learning.pathOf(model) };
    const report = await federation.pull(tenant, bundle, receiver);
    const mergeable = (control.canLoad ? control.models() : learning.models()).filter((model) => {
      const path = learning.pathOf(model);
      const own = path === null || report.adapters.length === 0 ? null : federation.hashModel(path);
      return report.adapters.some((one) => (own === null ? one.model === model : one.base === own));
    });
    const isTrainable = report.numExamples > 0 && learning.parts().some(({ name }) => name === 'routing');
    return { ...report, isTrainable, mergeable };
  },
});

export const federationOperations: readonly LearningOperation[] = [status, setPrivacy, addPeer, removePeer, push, pull];
