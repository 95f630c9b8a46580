// FIPS 180-4 and RFC 2104. WebCrypto is asynchronous and takes ten times as long for two blocks.

const BLOCK_BYTES = 64;
const ROUND_CONSTANTS = Int32Array.from(firstPrimes(64), (prime) => fraction(Math.cbrt(prime)));
const START = Int32Array.from(firstPrimes(8), (prime) => fraction(Math.sqrt(prime)));
const schedule = new Int32Array(64);

/** States of both passes after the key block: 8 words each. */
export interface HmacKey {
  readonly inner: Int32Array;
  readonly outer: Int32Array;
}

/** Prepares a key of at most 64 bytes. */
export function prepareHmacKey(key: Uint8Array): HmacKey {
  const pass = (mask: number): Int32Array => {
    const block = new Uint8Array(BLOCK_BYTES).fill(mask);
    for (const [index, byte] of key.entries()) block[index] = byte ^ mask;
    const state = START.slice();
    compress(state, block, 0);
    return state;
  };
  if (key.length > BLOCK_BYTES) throw new RangeError(`the key has ${key.length} bytes; the limit is ${BLOCK_BYTES}`);
  return { inner: pass(0x36), outer: pass(0x5c) };
}

/** HMAC-SHA-256 in hexadecimal. No branch and no index depends on the bytes. */
export function signHmac({ inner, outer }: HmacKey, text: Uint8Array): string {
  const digest = new Uint8Array(32);
  const view = new DataView(digest.buffer);
  finish(inner, text).forEach((word, index) => view.setInt32(4 * index, word));
  let hex = '';
  for (const word of finish(outer, digest)) hex += (word >>> 0).toString(16).padStart(8, '0');
  return hex;
}

/** Continues from the state after one block with the padded text. */
function finish(start: Int32Array, text: Uint8Array): Int32Array {
  const padded = new Uint8Array(Math.ceil((text.length + 9) / BLOCK_BYTES) * BLOCK_BYTES);
  padded.set(text);
  padded[text.length] = 0x80;
  const numBits = 8 * (BLOCK_BYTES + text.length);
  new DataView(padded.buffer).setBigUint64(padded.length - 8, BigInt(numBits));
  const state = start.slice();
  for (let offset = 0; offset < padded.length; offset += BLOCK_BYTES) compress(state, padded, offset);
  return state;
}

function compress(state: Int32Array, bytes: Uint8Array, offset: number): void {
  for (let i = 0; i < 16; i++) {
    const at = offset + 4 * i;
    schedule[i] = (bytes[at]! << 24) | (bytes[at + 1]! << 16) | (bytes[at + 2]! << 8) | bytes[at + 3]!;
  }
  for (let i = 16; i < 64; i++) {
    const [x, y] = [schedule[i - 15]!, schedule[i - 2]!];
    const s0 = ((x >>> 7) | (x << 25)) ^ ((x >>> 18) | (x << 14)) ^ (x >>> 3);
    const s1 = ((y >>> 17) | (y << 15)) ^ ((y >>> 19) | (y << 13)) ^ (y >>> 10);
    schedule[i] = (schedule[i - 16]! + s0 + schedule[i - 7]! + s1) | 0;
  }
  let a = state[0]!;
  let b = state[1]!;
  let c = state[2]!;
  let d = state[3]!;
  let e = state[4]!;
  let f = state[5]!;
  let g = state[6]!;
  let h = state[7]!;
  for (let i = 0; i < 64; i++) {
    const s1 = ((e >>> 6) | (e << 26)) ^ ((e >>> 11) | (e << 21)) ^ ((e >>> 25) | (e << 7));
    const t1 = (h + s1 + ((e & f) ^ (~e & g)) + ROUND_CONSTANTS[i]! + schedule[i]!) | 0;
    const s0 = ((a >>> 2) | (a << 30)) ^ ((a >>> 13) | (a << 19)) ^ ((a >>> 22) | (a << 10));
    const t2 = (s0 + ((a & b) ^ (a & c) ^ (b & c))) | 0;
    h = g;
    g = f;
    f = e;
    e = (d + t1) | 0;
    d = c;
    c = b;
    b = a;
    a = (t1 + t2) | 0;
  }
  const added = [a, b, c, d, e, f, g, h];
  for (let i = 0; i < 8; i++) state[i] = state[i]! + added[i]!;
}

function firstPrimes(count: number): number[] {
  const primes: number[] = [];
  for (let n = 2; primes.length < count; n++) if (primes.every((prime) => n % prime !== 0)) primes.push(n);
  return primes;
}

/** The first 32 fractional bits; a double has enough precision. */
function fraction(x: number): number {
  return ((x - Math.floor(x)) * 2 ** 32) | 0;
}
