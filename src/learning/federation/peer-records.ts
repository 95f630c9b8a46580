import { z } from 'zod';
import { nameId } from '../../memory/common/ids.ts';
import { retryConflict } from '../../memory/common/retry-conflict.ts';
import type { MemoryServices } from '../../memory/common/services.ts';
import { count, name, parseStored, text, timeMs } from '../../memory/schemas/primitives.ts';
import type { JsonValue, MemoryStore } from '../../memory/types.ts';
import { NEW_LEDGER, privacyLedger, type PrivacyLedger } from './privacy/ledger.ts';

const peerRecord = z.strictObject({
  key: name,
  /** Of the first accepted bundle: another tenant of the same sender is refused. Null: none was accepted. */
  stream: name.nullable(),
  /** The highest one accepted; kept when a peer is removed, so that its old bundles stay refused. */
  sequence: count,
  /** Times of accepted bundles within the last day. */
  acceptedMs: z.array(timeMs).max(1000),
  expiresMs: timeMs,
  /** The stored contents; null: removed. */
  blob: name.nullable(),
  numExamples: count,
  numPatterns: count.default(0),
  /** Models with an adapter in the bundle, as the peer names them. */
  adapters: z.array(name).default([]),
  numRefused: count,
  lastRefusal: text(1024).nullable(),
});
export type PeerRecord = z.infer<typeof peerRecord>;

const senderRecord = z.strictObject({
  sequence: count,
  pushedMs: timeMs,
  numBundles: count,
  /** Of them with noise. */
  numNoised: count.default(0),
  numExamples: count,
  numPatterns: count.default(0),
  adapters: z.array(name).default([]),
});
export type SenderRecord = z.infer<typeof senderRecord>;

const NEW_PEER: Omit<PeerRecord, 'key'> = { stream: null, sequence: 0, acceptedMs: [], expiresMs: 0, blob: null, numExamples: 0, numPatterns: 0, adapters: [], numRefused: 0, lastRefusal: null }; // prettier-ignore
const NEW_SENDER: SenderRecord = { sequence: 0, pushedMs: 0, numBundles: 0, numNoised: 0, numExamples: 0, numPatterns: 0, adapters: [] }; // prettier-ignore

const PEER_NAME = 'federation-peer';
const SENDER_NAME = 'federation-sender';
const LEDGER_NAME = 'federation-privacy';

/** Records of what a tenant received and sent; sealed and erased with the tenant. */
export interface PeerRecords {
  peer(tenant: string, key: string): Promise<PeerRecord>;
  /** Atomic: of two bundles at the same time, one is seen as older. */
  changePeer(tenant: string, key: string, change: (one: PeerRecord) => PeerRecord): Promise<PeerRecord>;
  sender(tenant: string): Promise<SenderRecord>;
  changeSender(tenant: string, change: (one: SenderRecord) => SenderRecord): Promise<SenderRecord>;
  ledger(tenant: string): Promise<PrivacyLedger>;
  /** Atomic: two pushes at the same time spend twice. */
  changeLedger(tenant: string, change: (one: PrivacyLedger) => PrivacyLedger): Promise<PrivacyLedger>;
}

export function createPeerRecords(store: MemoryStore, services: MemoryServices): PeerRecords {
  async function read<T>(
    tenant: string,
    id: string,
    schema: z.ZodType<T>,
    fallback: T,
  ): Promise<{ value: T; version: number }> {
    const [record] = await store.get(tenant, [id]);
    if (record == null) return { value: fallback, version: 0 };
    return { value: parseStored<T>(schema, record.body, `federation record ${id}`), version: record.version };
  }

  const change = <T>(
    tenant: string,
    [kind, key]: readonly [string, string],
    schema: z.ZodType<T>,
    fallback: T,
    alter: (one: T) => T,
  ): Promise<T> =>
    // prettier-ignore
    retryConflict(async () => {
      const id = nameId(services.sha256, tenant, kind, key);
      const { value, version } = await read(tenant, id, schema, fallback);
      const after = alter(value);
      await store.put([
        {
          id,
          tenant,
          kind: 'state',
          expiresMs: null,
          fields: { name: kind },
          body: after as JsonValue,
          vector: null,
          space: null,
          ifVersion: version,
        },
      ]);
      return after;
    });

  return {
    peer: async (tenant, key) =>
      (
        await read<PeerRecord>(tenant, nameId(services.sha256, tenant, PEER_NAME, key), peerRecord, {
          ...NEW_PEER,
          key,
        })
      ).value,
    changePeer: (tenant, key, alter) =>
      change<PeerRecord>(tenant, [PEER_NAME, key], peerRecord, { ...NEW_PEER, key }, alter),
    sender: async (tenant) =>
      (await read<SenderRecord>(tenant, nameId(services.sha256, tenant, SENDER_NAME, ''), senderRecord, NEW_SENDER))
        .value,
    changeSender: (tenant, alter) => change<SenderRecord>(tenant, [SENDER_NAME, ''], senderRecord, NEW_SENDER, alter),
    ledger: async (tenant) => (await read<PrivacyLedger>(tenant, nameId(services.sha256, tenant, LEDGER_NAME, ''), privacyLedger, NEW_LEDGER)).value, // prettier-ignore
    changeLedger: (tenant, alter) => change<PrivacyLedger>(tenant, [LEDGER_NAME, ''], privacyLedger, NEW_LEDGER, alter),
  };
}
