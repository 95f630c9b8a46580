import type { LowRankFactors } from '../../adapters/types.ts';
import type { MemoryServices } from '../../memory/common/services.ts';
import type { MemoryStore } from '../../memory/types.ts';
import type { VectoredRoutes } from '../router-training/collect-routes.ts';
import type { PeerEvidence } from '../router-training/router-trainer.ts';
import type { AdapterEvidence } from './adapter-evidence.ts';
import type { Bundle, BundleSigner } from './bundle.ts';
import type { PeerRecord, SenderRecord } from './peer-records.ts';
import type { PatternQuestion, SharedPattern } from './peer-patterns.ts';
import type { Receiver, RefusedPart } from './refuse-parts.ts';
import type { PrivacyBudget, PrivacyStatus } from './privacy/ledger.ts';
import type { FillRandom } from './privacy/random-integers.ts';
import type { ShareOptions } from './route-evidence.ts';

/** A node whose bundles a tenant accepts. */
export interface TrustedPeer {
  /** Ed25519 public key in base64. */
  readonly key: string;
  readonly name: string;
}

/** The peers of each tenant, kept by the platform. */
export interface PeerTrust {
  list(tenant: string): readonly TrustedPeer[];
  add(tenant: string, peer: TrustedPeer): void;
  remove(tenant: string, key: string): void;
}

/** The rated requests that this node shares. */
export interface OwnRoutes {
  /**
   * `isWhole`: all rated requests without vectors, and candidates that do not depend on them: a limit would let one request decide
   * about others. Default: the newest.
   */
  collect(
    tenant: string,
    options?: { readonly isWhole?: boolean },
  ): Promise<VectoredRoutes & { readonly candidates: readonly string[] }>;
}

/** A trained adapter of this node and the file of its model. */
export interface OwnAdapter {
  readonly model: string;
  readonly path: string;
  readonly architecture: string;
  readonly factors: readonly LowRankFactors[];
}

/** The adapter of a peer for a model. */
export interface PeerDelta {
  /** As in `learnedFrom`. */
  readonly id: string;
  readonly peer: string;
  readonly factors: readonly LowRankFactors[];
}

export interface PackedAdapters {
  readonly adapters: readonly AdapterEvidence[];
  readonly notShared: readonly { readonly model: string; readonly reason: string }[];
}

export interface PushOptions extends ShareOptions {
  /** Time until the bundle expires. Default 30 days, at most 90. */
  readonly lifetimeMs?: number;
  /** Whether patterns are shared. Default true; with a privacy budget they cannot be. */
  readonly patterns?: boolean;
  /** From `packAdapters`. Default none. */
  readonly adapters?: readonly AdapterEvidence[];
}

export interface PullReport {
  readonly peer: string;
  readonly sequence: number;
  readonly numExamples: number;
  readonly numPatterns: number;
  /** Models with an adapter in the bundle. */
  readonly adapters: readonly { readonly model: string; readonly base: string }[];
  readonly expiresMs: number;
  /** Parts made for another embedder or another model file; the others are accepted. */
  readonly refused: readonly RefusedPart[];
}

export interface PeerStatus extends TrustedPeer, Omit<PeerRecord, 'key' | 'acceptedMs' | 'blob' | 'stream'> {
  /** Accepted within the last day. */
  readonly numToday: number;
  readonly isExpired: boolean;
}

export interface FederationStatus {
  readonly key: string;
  readonly peers: readonly PeerStatus[];
  readonly sent: Omit<SenderRecord, 'sequence'>;
  /** Null: bundles are not noised. */
  readonly privacy: PrivacyStatus | null;
}

/** Shares what a tenant learned with trusted nodes, and learns from theirs. */
export interface Federation extends PeerEvidence {
  status(tenant: string): Promise<FederationStatus>;
  /** From now on bundles are noised, until the budget is spent; null: no longer. Spent budget stays spent. */
  setPrivacy(tenant: string, budget: PrivacyBudget | null): Promise<PrivacyStatus | null>;
  addPeer(tenant: string, peer: TrustedPeer): Promise<TrustedPeer>;
  /** Deletes the bundles received from it; returns its id in `learnedFrom`. */
  removePeer(tenant: string, keyOrName: string): Promise<TrustedPeer & { readonly id: string }>;
  /** A signed bundle of the tenant's own evidence; never of what it received. */
  push(tenant: string, options?: PushOptions): Promise<Bundle>;
  /** Checks and stores a bundle; nothing serves before the router's gate accepts it. */
  pull(tenant: string, bundle: unknown, receiver?: Receiver): Promise<PullReport>;
  /** Adapters in 8 bits; those that do not fit into a bundle are left out. */
  packAdapters(adapters: readonly OwnAdapter[]): PackedAdapters;
  /** Own patterns near a question together with those of peers; null: no peer has patterns of its space. */
  patternsNear(tenant: string, question: PatternQuestion, k: number): Promise<readonly SharedPattern[] | null>;
  /** Adapters of peers for this model file; throws `conflict` if they trained only for another file of this name. */
  deltasOf(tenant: string, model: string, path: string): Promise<readonly PeerDelta[]>;
  /** SHA-256 of a model file. */
  hashModel(path: string): string;
}

export interface FederationContext {
  readonly store: MemoryStore;
  readonly services: MemoryServices;
  readonly signer: BundleSigner;
  readonly trust: PeerTrust;
  readonly own: OwnRoutes;
  /** SHA-256 of a model file. Default: adapters are neither shared nor merged. */
  hashModel?(path: string): string;
  /** Of the noise. Default: cryptographic. */
  readonly fillRandom?: FillRandom;
}
