import { messageOf, RuvLLMError } from '../../core/errors.ts';
import { hashText } from '../../memory/common/ids.ts';
import { textFromFloats, textToFloats } from '../router-training/router-line.ts';
import type { ForeignRoutes } from '../router-training/router-trainer.ts';
import { createFloatBlobs } from '../versions/blobs.ts';
import { listPatterns } from '../reasoning-bank/list-patterns.ts';
import { type AdapterEvidence, fromAdapterEvidence, MAX_ADAPTER_CHARS, MAX_SHARED_ADAPTERS, toAdapterEvidence } from './adapter-evidence.ts'; // prettier-ignore
import { type Bundle, checkSignature, checkTimes, MAX_LIFETIME_MS, readBundle, signBundle } from './bundle.ts'; // prettier-ignore
import { type BundleContents, fitContents, readContents } from './contents.ts';
import { toPatternEvidence } from './pattern-evidence.ts';
import { createPeerPatterns, type PeerEvidenceOf } from './peer-patterns.ts';
import { peerId } from './peer-id.ts';
import { otherBase, type Receiver, refuseParts } from './refuse-parts.ts';
import { createPeerRecords, type PeerRecord } from './peer-records.ts';
import { charge, privacyStatus, resolveBudget, rhoPerPush } from './privacy/ledger.ts';
import { refuseUnnoised, rhoOf, toPrivateEvidence, varianceFor } from './privacy/private-routes.ts';
import { createRandomIntegers, fillFromCrypto } from './privacy/random-integers.ts';
import { fromRouteEvidence, type ShareOptions, toRouteEvidence } from './route-evidence.ts';
import type { Federation, FederationContext, PeerStatus, PushOptions, TrustedPeer } from './types.ts';

export type * from './types.ts';
export type { PrivacyBudget, PrivacyStatus } from './privacy/ledger.ts';

const DAY_MS = 86_400_000;
/** Accepted bundles of a peer per day: each starts a training. */
export const MAX_BUNDLES_PER_DAY = 24;
/** Peers of a tenant. */
const MAX_PEERS = 16;
const DEFAULT_LIFETIME_MS = 30 * DAY_MS;
const NAME = /^[\w.-]{1,64}$/;

/** Patterns of the bank that are compared for a bundle. */
const MAX_LISTED_PATTERNS = 10_000;

function noHash(): never {
  throw new RuvLLMError('unsupported', 'this node cannot identify model files, so it shares no adapters');
}

export function createFederation(context: FederationContext): Federation {
  const { store, services, signer, trust, own, hashModel = noHash, fillRandom = fillFromCrypto } = context;
  const records = createPeerRecords(store, services);
  const blobs = createFloatBlobs(store, services, 'federation');

  /** Only who has the private key can tell which tenant it is. */
  const streamOf = (tenant: string): string =>
    hashText(services.sha256, signer.sign(new TextEncoder().encode(`ruvllm-federation stream\n${tenant}`))).slice(
      0,
      32,
    );

  const isStale = ({ expiresMs, blob }: PeerRecord): boolean => blob === null || expiresMs <= services.now();

  /** Why a peer's bundle is refused; null: it is not. */
  function findRefusal(record: PeerRecord, { stream, sequence }: Bundle, today: readonly number[]): RuvLLMError | null {
    if (record.stream !== null && record.stream !== stream)
      return new RuvLLMError('untrusted', `bundle ${sequence} is of another tenant of its sender: stream ${stream}, expected ${record.stream}`, { data: { stream, expected: record.stream } }); // prettier-ignore
    if (sequence <= record.sequence)
      return new RuvLLMError('conflict', `bundle ${sequence} was replaced by ${record.sequence}; it cannot be used again`, { data: { sequence, newest: record.sequence } }); // prettier-ignore
    if (today.length < MAX_BUNDLES_PER_DAY) return null;
    const retryAfterMs = today[0]! + DAY_MS - services.now();
    return new RuvLLMError('rate_limit_exceeded', `${today.length} bundles of this peer were accepted within a day, the limit is ${MAX_BUNDLES_PER_DAY}`, { data: { retryAfterMs, limit: MAX_BUNDLES_PER_DAY } }); // prettier-ignore
  }

  const todayOf = ({ acceptedMs }: PeerRecord): number[] => acceptedMs.filter((ms) => ms > services.now() - DAY_MS);

  const noteRefusal = (tenant: string, key: string, error: unknown): Promise<unknown> =>
    records.changePeer(tenant, key, (one) => ({
      ...one,
      numRefused: one.numRefused + 1,
      lastRefusal: messageOf(error).slice(0, 1024),
    }));

  async function accept(tenant: string, bundle: Bundle, receiver: Receiver) {
    checkTimes(bundle, services.now());
    const { kept, refused } = refuseParts(readContents(bundle.contents), receiver, hashModel);
    const before = await records.peer(tenant, bundle.key);
    const early = findRefusal(before, bundle, todayOf(before));
    // Before anything is stored: refused bundles must not fill the disk.
    if (early !== null) throw early;
    const blob = await blobs.put(tenant, textToFloats(refused.length === 0 ? bundle.contents : JSON.stringify(kept)));
    let replaced: string | null = null;
    const record = await records.changePeer(tenant, bundle.key, (one) => {
      const today = todayOf(one);
      const refusal = findRefusal(one, bundle, today);
      if (refusal !== null) throw refusal;
      replaced = one.blob;
      return {
        ...one,
        stream: bundle.stream,
        sequence: bundle.sequence,
        acceptedMs: [...today, Math.floor(services.now())],
        expiresMs: bundle.expiresMs,
        blob,
        ...countsOf(kept),
        ...(refused.length === 0 ? {} : { lastRefusal: refused[0]!.reason.slice(0, 1024) }),
      };
    });
    // Two peers may share equal contents; theirs has the same name.
    if (replaced !== null && replaced !== blob && !(await isUsed(tenant, replaced)))
      await blobs.delete(tenant, replaced);
    return { record, kept, refused };
  }

  /** Bundles that are not expired. */
  async function received(tenant: string): Promise<{ key: string; name: string; contents: BundleContents }[]> {
    const all: { key: string; name: string; contents: BundleContents }[] = [];
    for (const { key, name } of trust.list(tenant)) {
      const record = await records.peer(tenant, key);
      if (isStale(record)) continue;
      all.push({ key, name, contents: readContents(textFromFloats(await blobs.get(tenant, record.blob!))) });
    }
    return all;
  }

  const patternsNear = createPeerPatterns(store, {
    read: async (tenant) =>
      (await received(tenant)).flatMap(({ name, contents: { patterns } }): PeerEvidenceOf[] =>
        patterns === undefined ? [] : [{ peer: name, patterns }],
      ),
    async revision(tenant) {
      const parts: string[] = [];
      for (const { key, name } of trust.list(tenant)) {
        const record = await records.peer(tenant, key);
        if (!isStale(record)) parts.push(`${name} ${key} ${record.sequence}`);
      }
      return parts.join('\n');
    },
  });

  async function collect(tenant: string, share: ShareOptions & Pick<PushOptions, 'patterns' | 'adapters'>) {
    const { patterns: isSharing = true, adapters = [], ...options } = share;
    const { examples, candidates, space } = await own.collect(tenant);
    const patterns = isSharing ? toPatternEvidence(await listPatterns(store, tenant, MAX_LISTED_PATTERNS), options) : null; // prettier-ignore
    if (examples.length === 0 && patterns === null && adapters.length === 0)
      throw new RuvLLMError('not_found', 'no rated requests that a router candidate answered, no patterns and no trained adapter; there is nothing to share'); // prettier-ignore
    return fitContents({
      ...(examples.length === 0 ? {} : { routes: toRouteEvidence(examples, candidates, space, options) }),
      ...(patterns === null ? {} : { patterns }),
      ...(adapters.length === 0 ? {} : { adapters: [...adapters] }),
    });
  }

  /** Charged before the noise is drawn: a crash loses a part of the budget and never spends more. */
  async function collectNoised(tenant: string, share: PushOptions) {
    refuseUnnoised(share);
    const { examples, candidates } = await own.collect(tenant, { isWhole: true });
    const ledger = await records.ledger(tenant);
    const variance = varianceFor(rhoPerPush(ledger));
    await records.changeLedger(tenant, (one) => charge(one, rhoOf(variance)));
    const routes = await toPrivateEvidence(examples, candidates, variance, createRandomIntegers(fillRandom));
    return fitContents({ routes });
  }

  async function privacyOf(tenant: string) {
    const { numBundles, numNoised } = await records.sender(tenant);
    return privacyStatus(await records.ledger(tenant), numBundles - numNoised);
  }

  async function isUsed(tenant: string, blob: string): Promise<boolean> {
    for (const { key } of trust.list(tenant)) if ((await records.peer(tenant, key)).blob === blob) return true;
    return false;
  }

  function requirePeer(tenant: string, key: string): TrustedPeer {
    const peer = trust.list(tenant).find((one) => one.key === key);
    if (peer !== undefined) return peer;
    throw new RuvLLMError('untrusted', `key ${key} is not a peer of this tenant; add it with: ruvllm federate peers add KEY --name NAME`, { data: { key } }); // prettier-ignore
  }

  return {
    async status(tenant) {
      const { sequence: _, ...sent } = await records.sender(tenant);
      const peers: PeerStatus[] = [];
      for (const peer of trust.list(tenant)) {
        const record = await records.peer(tenant, peer.key);
        const { acceptedMs: _accepted, blob: _blob, stream: _stream, ...figures } = record;
        peers.push({ ...peer, ...figures, numToday: todayOf(record).length, isExpired: record.sequence > 0 && isStale(record) }); // prettier-ignore
      }
      return { key: signer.publicKey(), peers, sent, privacy: await privacyOf(tenant) };
    },
    async setPrivacy(tenant, limits) {
      const budget = limits === null ? null : resolveBudget(limits);
      await records.changeLedger(tenant, (one) => ({ ...one, budget }));
      return privacyOf(tenant);
    },
    async addPeer(tenant, peer) {
      const { key, name } = peer;
      const all = trust.list(tenant);
      const refuse = (message: string, option: string): never => {
        throw new RuvLLMError('invalid_option', message, { data: { option } });
      };
      if (!NAME.test(name)) refuse(`the name of a peer must match ${NAME}, got ${JSON.stringify(name).slice(0, 100)}`, 'name'); // prettier-ignore
      if (key === signer.publicKey()) refuse('this is the key of this node; a node is not its own peer', 'key');
      if (all.some((one) => one.name === name && one.key !== key)) refuse(`"${name}" is already the name of a peer with another key`, 'name'); // prettier-ignore
      if (all.length >= MAX_PEERS && !all.some((one) => one.key === key)) refuse(`the tenant has ${all.length} peers, the limit is ${MAX_PEERS}`, 'key'); // prettier-ignore
      trust.add(tenant, peer);
      return peer;
    },
    async removePeer(tenant, keyOrName) {
      const peer = trust.list(tenant).find(({ key, name }) => key === keyOrName || name === keyOrName);
      if (peer === undefined)
        throw new RuvLLMError('not_found', `no peer ${JSON.stringify(keyOrName).slice(0, 100)} of this tenant`);
      trust.remove(tenant, peer.key);
      const { blob } = await records.peer(tenant, peer.key);
      await records.changePeer(tenant, peer.key, (one) => ({ ...one, blob: null, numExamples: 0, numPatterns: 0, adapters: [] })); // prettier-ignore
      if (blob !== null && !(await isUsed(tenant, blob))) await blobs.delete(tenant, blob);
      return { ...peer, id: peerId(peer.key) };
    },
    async push(tenant, { lifetimeMs = DEFAULT_LIFETIME_MS, ...share } = {}) {
      if (!(lifetimeMs > 0 && lifetimeMs <= MAX_LIFETIME_MS))
        throw new RuvLLMError('invalid_option', `a bundle lives for up to ${MAX_LIFETIME_MS} ms, got ${lifetimeMs}`, { data: { option: 'lifetimeMs' } }); // prettier-ignore
      const isNoised = (await records.ledger(tenant)).budget !== null;
      const { contents, text } = await (isNoised ? collectNoised : collect)(tenant, share);
      const createdMs = Math.floor(services.now());
      const { sequence } = await records.changeSender(tenant, (one) => ({
        ...one,
        // By the clock, so that a restored backup does not send numbers again that peers have seen.
        sequence: Math.max(one.sequence + 1, createdMs),
        pushedMs: createdMs,
        numBundles: one.numBundles + 1,
        numNoised: one.numNoised + +isNoised,
        ...countsOf(contents),
      }));
      const key = signer.publicKey();
      return signBundle({ key, stream: streamOf(tenant), sequence, createdMs, expiresMs: createdMs + lifetimeMs, contents: text }, signer); // prettier-ignore
    },
    async pull(tenant, value, receiver = ANY_RECEIVER) {
      const bundle = readBundle(value);
      const peer = requirePeer(tenant, bundle.key);
      // Before anything is written: only the peer itself may cause a write.
      checkSignature(bundle, signer);
      try {
        const { record, kept, refused } = await accept(tenant, bundle, receiver);
        const { sequence, numExamples, numPatterns, expiresMs } = record;
        const adapters = (kept.adapters ?? []).map(({ model, base }) => ({ model, base }));
        return { peer: peer.name, sequence, numExamples, numPatterns, adapters, expiresMs, refused };
      } catch (error) {
        await noteRefusal(tenant, bundle.key, error);
        throw error;
      }
    },
    async routesOf(tenant, candidates, space) {
      return (await received(tenant)).flatMap(({ key, name, contents: { routes } }): ForeignRoutes[] => {
        if (routes === undefined) return [];
        const all = fromRouteEvidence(routes, candidates, name, space);
        const examples = space === null ? all : all.filter(({ request }) => request.vector !== undefined);
        return examples.length === 0 ? [] : [{ id: peerId(key), peer: name, examples }];
      });
    },
    patternsNear,
    hashModel,
    packAdapters(adapters) {
      const packed: AdapterEvidence[] = [];
      const notShared: { model: string; reason: string }[] = [];
      let numChars = 0;
      for (const { path, ...adapter } of adapters) {
        const evidence = toAdapterEvidence({ ...adapter, base: hashModel(path) });
        const { length } = JSON.stringify(evidence);
        const isFull = packed.length >= MAX_SHARED_ADAPTERS || numChars + length > MAX_ADAPTER_CHARS;
        if (isFull)
          notShared.push({ model: adapter.model, reason: `${length} characters besides ${numChars} of ${packed.length} adapters; a bundle has ${MAX_ADAPTER_CHARS} for ${MAX_SHARED_ADAPTERS}` }); // prettier-ignore
        else {
          packed.push(evidence);
          numChars += length;
        }
      }
      return { adapters: packed, notShared };
    },
    async deltasOf(tenant, model, path) {
      const base = hashModel(path);
      const all = (await received(tenant)).flatMap(({ key, name, contents: { adapters = [] } }) =>
        adapters.map((adapter) => ({ key, name, adapter })),
      );
      const fitting = all.filter(({ adapter }) => adapter.base === base);
      const other = all.find(({ adapter }) => adapter.model === model);
      if (fitting.length === 0 && other !== undefined) throw otherBase(other.name, other.adapter, base);
      // One vote for each peer.
      const votes = new Map(fitting.map(({ key, name, adapter }) => [key, { id: peerId(key), peer: name, factors: fromAdapterEvidence(adapter) }])); // prettier-ignore
      return [...votes.values()];
    },
    async revision(tenant) {
      let sum = 0;
      for (const { key } of trust.list(tenant)) {
        const record = await records.peer(tenant, key);
        if (!isStale(record)) sum += record.sequence;
      }
      return sum;
    },
  };
}

const ANY_RECEIVER: Receiver = { space: null, pathOf: () => null };

const countsOf = ({ routes, patterns, adapters = [] }: BundleContents) => ({
  numExamples: routes?.examples.length ?? 0,
  numPatterns: patterns?.patterns.length ?? 0,
  adapters: adapters.map(({ model }) => model),
});
