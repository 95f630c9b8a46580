// All acknowledged writes of a server, from its answers alone. A write without an answer may exist or not.
import type { Tenant } from './site.ts';

/** A value that later writes replace. */
export interface Replaceable {
  readonly tenant: Tenant;
  /** Of the last acknowledged write; null: none was acknowledged. */
  value: string | null;
  /** Values of acknowledged writes before it. If one of them is back, the later write is lost. */
  readonly earlier: Set<string>;
  /** Sent after it and not answered: either may be there. The load then writes this value no more. */
  maybe: string | null;
}

/** Notes an acknowledged write, which replaces the value before it. */
export function acknowledge(known: Replaceable, value: string): void {
  if (known.value !== null) known.earlier.add(known.value);
  known.earlier.delete(value);
  known.value = value;
  known.maybe = null;
}

export interface Chat extends Replaceable {
  version: number;
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
  /** Verdicts of the receipts. */
  readonly ratings: Map<string, Replaceable>;
  readonly conversations: Map<string, Conversation>;
  /** Conversations of the API: on disk before the reply. */
  readonly items: Map<string, StoredText>;
  readonly responses: Map<string, StoredText>;
  /** Titles. */
  readonly chats: Map<string, Chat>;
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
