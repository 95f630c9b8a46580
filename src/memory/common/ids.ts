import type { MemoryServices, Sha256 } from './services.ts';

const HEX = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'));
const encoder = new TextEncoder();
/** 12 bits beside the milliseconds: so many ids in one of them before the next is borrowed. */
const IDS_PER_MS = 4096;

export function toHex(bytes: Uint8Array): string {
  let text = '';
  for (const byte of bytes) text += HEX[byte];
  return text;
}

export function hashText(sha256: Sha256, text: string): string {
  return toHex(sha256(encoder.encode(text)));
}

function formatUuid(bytes: Uint8Array): string {
  bytes[6] = (bytes[6]! & 0x0f) | 0x70;
  bytes[8] = (bytes[8]! & 0x3f) | 0x80;
  const hex = toHex(bytes);
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}

/**
 * The one id of something that has a name: the same in every process, so that two that make it at once meet in a
 * `conflict` instead of making it twice. A UUIDv7 of the year 1970, which no id of `createIdSource` can be.
 */
export function nameId(sha256: Sha256, tenant: string, ...name: readonly string[]): string {
  const hash = sha256(encoder.encode(JSON.stringify([tenant, ...name])));
  const bytes = hash.slice(0, 16);
  bytes.fill(0, 0, 6);
  return formatUuid(bytes);
}

/** UUIDv7s that only grow, whatever the clock does: a counter in rand_a, and the next millisecond when that is full. */
export function createIdSource({ now, random }: Pick<MemoryServices, 'now' | 'random'>): () => string {
  let lastMs = 0;
  let counter = 0;
  return () => {
    const ms = Math.max(1, Math.floor(now()));
    if (ms > lastMs) {
      lastMs = ms;
      counter = 0;
    } else if (++counter === IDS_PER_MS) {
      lastMs++;
      counter = 0;
    }
    const bytes = new Uint8Array(16);
    const view = new DataView(bytes.buffer);
    view.setUint16(0, Math.floor(lastMs / 2 ** 32));
    view.setUint32(2, lastMs % 2 ** 32);
    view.setUint16(6, counter);
    view.setUint32(8, Math.floor(random.next() * 2 ** 32));
    view.setUint32(12, Math.floor(random.next() * 2 ** 32));
    return formatUuid(bytes);
  };
}
