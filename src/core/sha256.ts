/** A SHA-256 that takes its input in parts. Browsers hash only what is in memory as a whole. */
export interface Sha256 {
  update(bytes: Uint8Array): void;
  /** The 32 bytes of the digest; no update may follow. */
  digest(): Uint8Array;
}

const BLOCK_BYTES = 64;

/** FIPS 180-4: the first 32 bits of the fractional parts of the roots of the first primes. */
function rootBits(count: number, root: (prime: number) => number): Int32Array {
  const bits = new Int32Array(count);
  for (let prime = 2, i = 0; i < count; prime++) {
    let isPrime = true;
    for (let divisor = 2; divisor * divisor <= prime && isPrime; divisor++) isPrime = prime % divisor !== 0;
    if (!isPrime) continue;
    const value = root(prime);
    bits[i++] = ((value - Math.floor(value)) * 2 ** 32) | 0;
  }
  return bits;
}

const START = rootBits(8, Math.sqrt);
const ROUND = rootBits(64, Math.cbrt);

/** SHA-256 of bytes in memory. */
export function sha256(bytes: Uint8Array): Uint8Array {
  const hash = createSha256();
  hash.update(bytes);
  return hash.digest();
}

export const toHex = (bytes: Uint8Array): string =>
  Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');

export function createSha256(): Sha256 {
  const state = START.slice();
  const words = new Int32Array(64);
  const block = new Uint8Array(BLOCK_BYTES);
  let blockBytes = 0;
  let totalBytes = 0;

  function update(bytes: Uint8Array): void {
    totalBytes += bytes.length;
    let at = 0;
    if (blockBytes > 0) {
      at = Math.min(BLOCK_BYTES - blockBytes, bytes.length);
      block.set(bytes.subarray(0, at), blockBytes);
      blockBytes += at;
      if (blockBytes < BLOCK_BYTES) return;
      compress(state, words, block, 0);
    }
    for (; at + BLOCK_BYTES <= bytes.length; at += BLOCK_BYTES) compress(state, words, bytes, at);
    block.set(bytes.subarray(at));
    blockBytes = bytes.length - at;
  }

  return {
    update,
    digest() {
      const numBits = BigInt(totalBytes) * 8n;
      const padding = new Uint8Array(BLOCK_BYTES - ((blockBytes + 8) % BLOCK_BYTES) + 8);
      padding[0] = 0x80;
      new DataView(padding.buffer).setBigUint64(padding.length - 8, numBits);
      update(padding);
      const digest = new Uint8Array(4 * state.length);
      state.forEach((word, i) => new DataView(digest.buffer).setInt32(4 * i, word));
      return digest;
    },
  };
}

function compress(state: Int32Array, words: Int32Array, bytes: Uint8Array, start: number): void {
  for (let i = 0, at = start; i < 16; i++, at += 4) {
    words[i] = (bytes[at]! << 24) | (bytes[at + 1]! << 16) | (bytes[at + 2]! << 8) | bytes[at + 3]!;
  }
  for (let i = 16; i < 64; i++) {
    const x = words[i - 15]!;
    const y = words[i - 2]!;
    const low = ((x >>> 7) | (x << 25)) ^ ((x >>> 18) | (x << 14)) ^ (x >>> 3);
    const high = ((y >>> 17) | (y << 15)) ^ ((y >>> 19) | (y << 13)) ^ (y >>> 10);
    words[i] = (words[i - 16]! + low + words[i - 7]! + high) | 0;
  }
  let a = state[0]!, b = state[1]!, c = state[2]!, d = state[3]!, e = state[4]!, f = state[5]!, g = state[6]!, h = state[7]!; // prettier-ignore
  for (let i = 0; i < 64; i++) {
    const mixE = ((e >>> 6) | (e << 26)) ^ ((e >>> 11) | (e << 21)) ^ ((e >>> 25) | (e << 7));
    const first = (h + mixE + ((e & f) ^ (~e & g)) + ROUND[i]! + words[i]!) | 0;
    const mixA = ((a >>> 2) | (a << 30)) ^ ((a >>> 13) | (a << 19)) ^ ((a >>> 22) | (a << 10));
    const second = (mixA + ((a & b) ^ (a & c) ^ (b & c))) | 0;
    h = g;
    g = f;
    f = e;
    e = (d + first) | 0;
    d = c;
    c = b;
    b = a;
    a = (first + second) | 0;
  }
  state[0] = (state[0]! + a) | 0;
  state[1] = (state[1]! + b) | 0;
  state[2] = (state[2]! + c) | 0;
  state[3] = (state[3]! + d) | 0;
  state[4] = (state[4]! + e) | 0;
  state[5] = (state[5]! + f) | 0;
  state[6] = (state[6]! + g) | 0;
  state[7] = (state[7]! + h) | 0;
}
