import { z } from 'zod';
import { nameId } from '../common/ids.ts';
import type { Sha256 } from '../common/services.ts';
import { count, name, parseStored, timeMs } from '../schemas/primitives.ts';
import type { JsonValue, MemoryStore, PutRecord } from '../types.ts';
import { GENESIS_HASH } from './chain.ts';

/** Stored in databases: the name stays. */
const HEAD_NAME = 'witness-head';

const mark = z.strictObject({ sequence: count, hash: name });
/** A place in a chain: the last entry before it. */
export type ChainMark = z.infer<typeof mark>;

const chainHead = z.strictObject({
  /** Of the newest entry. */
  sequence: count,
  hash: name,
  lastMs: timeMs,
  /** Of the entries that are in the store. */
  liveBytes: count,
  /** Entries that were given up, ever. */
  numDropped: count,
  /** Up to here entries have left the store for the archive. */
  archived: mark,
  /** Up to here they are gone for good. */
  trimmed: mark,
});
/** Where a tenant's chain ends; written in the same call as the entries it ends with. */
export type ChainHead = z.infer<typeof chainHead>;

export interface StoredHead {
  readonly head: ChainHead;
  /** Of the record; 0 while there is none. */
  readonly version: number;
}

const START: ChainMark = { sequence: 0, hash: GENESIS_HASH };
const EMPTY_HEAD: ChainHead = { ...START, lastMs: 0, liveBytes: 0, numDropped: 0, archived: START, trimmed: START };

export async function readHead(store: MemoryStore, sha256: Sha256, tenant: string): Promise<StoredHead> {
  const [record] = await store.get(tenant, [nameId(sha256, tenant, HEAD_NAME)]);
  if (!record) return { head: EMPTY_HEAD, version: 0 };
  return { head: parseStored<ChainHead>(chainHead, record.body, `audit head of ${tenant}`), version: record.version };
}

export function headPut(sha256: Sha256, tenant: string, head: ChainHead, ifVersion: number): PutRecord {
  return {
    id: nameId(sha256, tenant, HEAD_NAME),
    tenant,
    kind: 'state',
    expiresMs: null,
    fields: { name: HEAD_NAME, sequence: head.sequence },
    body: head as unknown as JsonValue,
    vector: null,
    space: null,
    ifVersion,
  };
}
