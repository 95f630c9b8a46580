import { createSha256, sha256, toHex } from '../../core/sha256.ts';
import { encodeNamespace } from '../../kv-cache/cache-namespace.ts';
import type { PageTier, SpillSpace, SpillStore } from '../../kv-cache/types.ts';
import type { SealedLog } from './sealing/sealed-log.ts';
import { messageOf } from '../../core/errors.ts';

/**
 * KV pages of one model in a sealed log. The engine reads pages in the middle of a step, and browsers decrypt only asynchronously:
 * therefore all pages are decrypted when the model is loaded and stay in memory, up to the limit.
 */
export interface SpillLogOptions {
  readonly log: SealedLog;
  readonly records: readonly Uint8Array[];
  readonly limitBytes: number;
  readonly warn: (message: string) => void;
}

interface Page {
  readonly tenant: string;
  readonly tier: PageTier;
  readonly bytes: Uint8Array;
}

const TIERS: readonly PageTier[] = ['float', 'packed'];
const KEY_BYTES = 32;
/** The log is rewritten when it has this many times the bytes of its pages. */
const GARBAGE_FACTOR = 2;

/** Format: tier, u16 length of the tenant, tenant, page key, page. */
function encodePage(key: string, { tenant, tier, bytes }: Page): Uint8Array {
  const name = new TextEncoder().encode(tenant);
  const record = new Uint8Array(3 + name.length + KEY_BYTES + bytes.length);
  record.set([TIERS.indexOf(tier), name.length & 0xff, name.length >> 8]);
  record.set(name, 3);
  record.set(
    key.match(/../g)!.map((digits) => Number.parseInt(digits, 16)),
    3 + name.length,
  );
  record.set(bytes, 3 + name.length + KEY_BYTES);
  return record;
}

function decodePage(record: Uint8Array): { key: string; page: Page } {
  const nameEnd = 3 + record[1]! + (record[2]! << 8);
  const keyEnd = nameEnd + KEY_BYTES;
  return {
    key: toHex(record.subarray(nameEnd, keyEnd)),
    page: {
      tenant: new TextDecoder().decode(record.subarray(3, nameEnd)),
      tier: TIERS[record[0]!] ?? 'float',
      bytes: record.slice(keyEnd),
    },
  };
}

export function createSpillLog({ log, records, limitBytes, warn }: SpillLogOptions): SpillStore {
  /** The longest unused first. */
  const pages = new Map<string, Page>();
  const counts = { numWrites: 0, numReads: 0, numEvictions: 0, numCorrupt: log.numDamaged, numFailedWrites: 0 };
  let sizeBytes = 0;
  let lastFailure: string | null = null;
  let isClosed = false;

  function drop(key: string): void {
    sizeBytes -= pages.get(key)?.bytes.length ?? 0;
    pages.delete(key);
  }
  function put(key: string, page: Page): void {
    drop(key);
    pages.set(key, page);
    sizeBytes += page.bytes.length;
    for (const oldest of pages.keys()) {
      if (sizeBytes <= limitBytes) break;
      drop(oldest);
      counts.numEvictions++;
    }
  }
  function fail(error: unknown): void {
    counts.numFailedWrites++;
    const message = messageOf(error);
    if (lastFailure === null) warn(`KV pages are not stored: ${message}`);
    lastFailure = message;
  }
  const rewrite = (): Promise<void> => log.rewrite([...pages].map(([key, page]) => encodePage(key, page)));

  for (const record of records) {
    const { key, page } = decodePage(record);
    put(key, page);
  }
  if (log.sizeBytes > GARBAGE_FACTOR * sizeBytes + limitBytes / 8) rewrite().catch(fail);

  const open: SpillStore['open'] = (namespace): SpillSpace => ({
    rootKey: toHex(sha256(encodeNamespace(namespace))),
    childKey(parentKey, tokens) {
      const hash = createSha256();
      hash.update(new TextEncoder().encode(parentKey));
      hash.update(new Uint8Array(Int32Array.from(tokens).buffer));
      return toHex(hash.digest());
    },
    has: (key) => pages.has(key),
    write(key, tier, bytes) {
      if (isClosed || bytes.length > limitBytes) return false;
      const page = { tenant: namespace.tenant, tier, bytes: bytes.slice() };
      put(key, page);
      counts.numWrites++;
      log.append(encodePage(key, page)).catch(fail);
      return true;
    },
    read(key) {
      const page = pages.get(key);
      if (page === undefined) return null;
      put(key, page); // the last to go
      counts.numReads++;
      return { tier: page.tier, bytes: page.bytes };
    },
  });

  return {
    open,
    eraseTenant(tenant) {
      for (const [key, page] of pages) if (page.tenant === tenant) drop(key);
      rewrite().catch(fail);
    },
    numPagesOf: (tenant) => [...pages.values()].filter((page) => page.tenant === tenant).length,
    stats: () => ({ ...counts, numPages: pages.size, sizeBytes, limitBytes, lastFailure, ignored: [] }),
    // The file stays open for the writes in progress; it is closed with the worker.
    close() {
      isClosed = true;
    },
  };
}
