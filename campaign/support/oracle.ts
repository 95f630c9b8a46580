// All acknowledged writes of a server, from its answers alone. A write without an answer may exist or not.
import type { Tenant } from './site.ts';

export interface Rating {
  readonly tenant: Tenant;
  /** As the receipt has it. */
  verdict: string;
  /** A later rating was sent and not answered: either may be there. */
  isInDoubt: boolean;
}

export interface Conversation {
  readonly tenant: Tenant;
  readonly id: string;
  /** User messages whose answers arrived to their end, in order. */
  readonly turns: string[];
  /** Sent without a complete answer. */
  readonly unanswered: Set<string>;
}

export interface StoredText {
  readonly tenant: Tenant;
  readonly text: string;
}

/** All maps are by the id that the server gave. */
export interface Oracle {
  readonly records: Map<string, StoredText>;
  /** Acknowledged removals. */
  readonly removed: Set<string>;
  readonly maybeRemoved: Set<string>;
  /** Texts whose answer never came. */
  readonly maybeAdded: Set<string>;
  /** Texts and ids of refused writes: after a failed flush the server cannot know whether they reached the disk. */
  readonly refusedAdds: Set<string>;
  readonly refusedRemovals: Set<string>;
  readonly ratings: Map<string, Rating>;
  readonly conversations: Map<string, Conversation>;
  /** Conversations of the API: on disk before the reply. */
  readonly items: Map<string, StoredText>;
  /** Stored responses, which are written a moment after the reply. */
  readonly responses: Map<string, StoredText>;
  readonly chats: Map<string, { readonly tenant: Tenant; version: number; title: string; maybe: string | null }>;
  /** Created by the load: token by id. */
  readonly keys: Map<string, string>;
  readonly revokedKeys: Map<string, string>;
  /** Revocations without an answer. */
  readonly maybeRevoked: Set<string>;
  /** Request ids that can be rated. */
  readonly rateable: { readonly tenant: Tenant; readonly id: string }[];
  /** Acknowledged writes. */
  numAcknowledged: number;
}

export function createOracle(): Oracle {
  return {
    records: new Map(),
    removed: new Set(),
    maybeRemoved: new Set(),
    maybeAdded: new Set(),
    refusedAdds: new Set(),
    refusedRemovals: new Set(),
    ratings: new Map(),
    conversations: new Map(),
    items: new Map(),
    responses: new Map(),
    chats: new Map(),
    keys: new Map(),
    revokedKeys: new Map(),
    maybeRevoked: new Set(),
    rateable: [],
    numAcknowledged: 0,
  };
}
