import type { Sha256 } from './services.ts';

const HEX = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'));
const encoder = new TextEncoder();

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
 * The id of a named record: the same in every process, so that two writers conflict instead of creating it twice. A UUIDv7 of
 * the first millisecond of 1970, which no clock produces.
 */
export function nameId(sha256: Sha256, tenant: string, ...name: readonly string[]): string {
  const hash = sha256(encoder.encode(JSON.stringify([tenant, ...name])));
  const bytes = hash.slice(0, 16);
  bytes.fill(0, 0, 6);
  return formatUuid(bytes);
}
