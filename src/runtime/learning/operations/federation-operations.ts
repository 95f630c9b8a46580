import { z } from 'zod';
import { RuvLLMError } from '../../../core/errors.ts';
import type { Federation } from '../../../learning/federation/federation.ts';
import { forgetRouters } from '../../../learning/router-training/router-line.ts';
import { createFloatBlobs } from '../../../learning/versions/blobs.ts';
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
  scope: 'admin',
  input: z.strictObject({}),
  run: async (control, tenant) => ({ ...(await federationOf(control).status(tenant)) }),
});

const addPeer = defineLearning({
  name: 'federate.add-peer',
  summary: 'Trusts the bundles of a public key (Ed25519, base64) for the tenant.',
  scope: 'admin',
  input: z.strictObject({ key, name: text(64, 1) }),
  run: async (control, tenant, peer) => ({ ...(await federationOf(control).addPeer(tenant, peer)) }),
});

const removePeer = defineLearning({
  name: 'federate.remove-peer',
  summary: 'Removes a peer by key or name, deletes what it sent and withdraws routers trained on it.',
  scope: 'admin',
  input: z.strictObject({ peer: text(64, 1) }),
  async run(control, tenant, { peer }) {
    const { id, ...removed } = await federationOf(control).removePeer(tenant, peer);
    const { memory, learning } = control;
    const blobs = createFloatBlobs(memory.store, memory.services);
    const context = { versions: learning.sona.versions, blobs, policies: () => memory.policies };
    return { ...removed, withdrawn: await forgetRouters(context, tenant, new Set([id])) };
  },
});

const push = defineLearning({
  name: 'federate.push',
  summary: "A signed bundle of the tenant's own rated requests, as numbers; with `texts` also their texts.",
  scope: 'admin',
  input: z.strictObject({
    texts: z.boolean().default(false),
    terms: z.boolean().default(true),
    expiresDays: z.int().min(1).max(90).default(30),
  }),
  run: async (control, tenant, { expiresDays, ...share }) => ({
    bundle: await federationOf(control).push(tenant, { ...share, lifetimeMs: expiresDays * DAY_MS }),
  }),
});

const pull = defineLearning({
  name: 'federate.pull',
  summary:
    'Checks and stores a bundle of a peer; the next training of the router uses it if its gate accepts the result.',
  scope: 'admin',
  input: z.strictObject({ bundle: z.record(z.string(), z.unknown()) }),
  async run(control, tenant, { bundle }) {
    const report = await federationOf(control).pull(tenant, bundle);
    const isTrainable = control.learning.parts().some(({ name }) => name === 'routing');
    return { ...report, isTrainable };
  },
});

export const federationOperations: readonly LearningOperation[] = [status, addPeer, removePeer, push, pull];
