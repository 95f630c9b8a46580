import { z } from 'zod';
import { nameId } from '../common/ids.ts';
import type { Sha256 } from '../common/services.ts';
import { statePut } from '../common/store-access.ts';
import { count, name, parseStored, timeMs } from '../schemas/primitives.ts';
import type { MemoryStore, PutRecord } from '../types.ts';
import { GENESIS_HASH } from './chain.ts';

/** Stored in databases: the name stays. */
const HEAD_NAME = 'witness-head';

const mark = z.strictObject({ sequence: count, hash: name });
/** A place in a chain, named by the entry before it. */
export type ChainMark = z.infer<typeof mark>;

const chainHead = z.strictObject({
  /** Of the newest entry. */
  sequence: count,
  hash: name,
  lastMs: timeMs,
  /** Of the entries in the store. */
  liveBytes: count,
  /** Entries dropped so far. */
  numDropped: count,
  /** Entries up to here are in the archive. */
  archived: mark,
  /** Entries up to here are deleted. */
  trimmed: mark,
});
/** The end of a tenant's chain; written in the same call as its last entries. */
export type ChainHead = z.infer<typeof chainHead>;

export interface StoredHead {
  readonly head: ChainHead;
  /** Of the record; 0 without one. */
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
  const id = nameId(sha256, tenant, HEAD_NAME);
  return statePut({ id, tenant, ifVersion }, head, { name: HEAD_NAME, sequence: head.sequence });
}
