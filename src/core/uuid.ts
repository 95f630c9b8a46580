import { RuvLLMError } from './errors.ts';

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[1-8][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const MAX_MS = 2 ** 48 - 1;
/** Bits of the counter: rand_a (12) and the upper 18 of rand_b (RFC 9562, section 6.2, method 1). */
const COUNTER_BITS = 30;
/** A new counter leaves its top bit free: at least 2^29 ids fit into one millisecond. */
const FRESH_BITS = 29;
const RANDOM_BYTES = 10;

export interface UuidSource {
  /** Milliseconds since 1970. */
  readonly now: () => number;
  readonly randomBytes: (count: number) => Uint8Array;
}

const HEX_PAIRS = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'));
/** Bytes after a dash. */
const GAPS: readonly number[] = [4, 6, 8, 10];

const hexOf = (value: number, digits: number): string => value.toString(16).padStart(digits, '0');

/**
 * Creates a generator of increasing UUIDv7 (RFC 9562): within a millisecond, or if the clock goes backwards, the last
 * time is kept and a counter increases.
 */
export function createUuidV7({ now, randomBytes }: UuidSource): () => string {
  let lastMs = -1;
  let counter = 0;
  return () => {
    const random = randomBytes(RANDOM_BYTES);
    const nowMs = Math.floor(now());
    if (!(nowMs >= 0 && nowMs <= MAX_MS)) {
      throw new RuvLLMError('internal', `the clock reads ${nowMs} ms; a UUIDv7 requires 0 to ${MAX_MS}`);
    }
    if (nowMs > lastMs) {
      lastMs = nowMs;
      counter = ((random[0]! << 24) | (random[1]! << 16) | (random[2]! << 8) | random[3]!) >>> (32 - FRESH_BITS);
    } else if (++counter >= 2 ** COUNTER_BITS) {
      lastMs++; // ahead of the clock: order matters more than a millisecond
      counter = 0;
    }
    return format(lastMs, counter, random.subarray(4));
  };
}

/** 48 bits of time, version, 12 + 18 bits of counter around the variant, 44 random bits. */
function format(timeMs: number, counter: number, random: Uint8Array): string {
  const time = hexOf(timeMs, 12);
  const low = counter & 0x3ffff;
  const tail =
    hexOf(((low & 0xf) << 4) | (random[0]! & 0xf), 2) + Array.from(random.subarray(1), (b) => hexOf(b, 2)).join('');
  return `${time.slice(0, 8)}-${time.slice(8)}-7${hexOf(counter >>> 18, 3)}-${hexOf(0x8000 | (low >>> 4), 4)}-${tail}`;
}

/** Whether a text is a UUID of any version, in lower case. */
export function isUuid(text: unknown): text is string {
  return typeof text === 'string' && text.length === 36 && UUID.test(text);
}

/** The 16 bytes of a UUID; throws `invalid_option` for other texts. */
export function parseUuid(text: string): Uint8Array {
  if (!isUuid(text)) {
    const shown = JSON.stringify(String(text).slice(0, 80));
    throw new RuvLLMError('invalid_option', `${shown} is not a lower-case UUID`, { data: { option: 'id' } });
  }
  const bytes = new Uint8Array(16);
  for (let i = 0, at = 0; i < bytes.length; i++, at += 2) {
    if (GAPS.includes(i)) at++;
    bytes[i] = (digitOf(text, at) << 4) | digitOf(text, at + 1);
  }
  return bytes;
}

/** Value of a lower-case hex digit: `a` is 97, `0` is 48. */
function digitOf(text: string, at: number): number {
  const code = text.charCodeAt(at);
  return code > 57 ? code - 87 : code - 48;
}

export function formatUuid(bytes: Uint8Array): string {
  let text = '';
  for (let i = 0; i < bytes.length; i++) text += GAPS.includes(i) ? `-${HEX_PAIRS[bytes[i]!]}` : HEX_PAIRS[bytes[i]!];
  return text;
}

/** Formats 32 hex digits. */
export function formatUuidDigits(digits: string): string {
  return `${digits.slice(0, 8)}-${digits.slice(8, 12)}-${digits.slice(12, 16)}-${digits.slice(16, 20)}-${digits.slice(20)}`;
}
