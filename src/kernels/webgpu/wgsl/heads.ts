import { EXACT_MATH, type KernelSource, main, WORKGROUP } from './common.ts';
import { RMS_FACTOR } from './elementwise.ts';

/** One pair of a head; explicit fma, so that every kernel rounds alike. */
const TURN = `
fn turnPair(at: u32, angles: u32, pair: u32, rotaryDim: u32, isHalves: u32) {
  let i = at + select(2u * pair, pair, isHalves == 1u);
  let j = select(i + 1u, i + rotaryDim / 2u, isHalves == 1u);
  let cosine = num(angles + 2u * pair);
  let sine = num(angles + 2u * pair + 1u);
  let a = num(i);
  let b = num(j);
  put(i, fma(a, cosine, -(b * sine)));
  put(j, fma(a, sine, b * cosine));
}`;

export const ROPE: KernelSource = {
  name: 'rope',
  params: ['x', 'cosSin', 'numTokens', 'numHeads', 'headDim', 'rotaryDim', 'isHalves'],
  code:
    TURN +
    main(`
  let pairs = p.rotaryDim / 2u;
  let count = p.numTokens * p.numHeads * pairs;
  for (var n = wid.x * ${WORKGROUP}u + tid; n < count; n += nwg.x * ${WORKGROUP}u) {
    let row = n / pairs;
    turnPair(p.x + row * p.headDim, p.cosSin + row / p.numHeads * p.rotaryDim, n - row * pairs, p.rotaryDim, p.isHalves);
  }`),
};

/** Writes one value of a head to its slot; `KvRegion` describes the places. */
const STORE = `
fn storeValue(isFloat: u32, pageAt: u32, index: u32, value: f32) {
  if (isFloat == 1u) { put(pageAt + index, value); } else { putHalf(pageAt * 2u + index, toHalf(value)); }
}
fn storeHead(isKey: bool, source: u32, slotId: u32, head: u32, tid: u32) {
  let page = p.base + slotId / 16u * p.pageWords;
  let slot = slotId % 16u;
  for (var d = tid; d < p.headDim; d += ${WORKGROUP}u) { storeInHead(isKey, page, slot, head, d, num(source + d)); }
}
fn storeInHead(isKey: bool, page: u32, slot: u32, head: u32, d: u32, number: f32) {
  let key = (head * p.headDim + d) * 16u + slot;
  let value = (p.numKvHeads + head) * p.headDim * 16u + slot * p.headDim + d;
  storeValue(p.isFloat, page, select(value, key, isKey), number);
}`;

export const WRITE_KV: KernelSource = {
  name: 'writeKv',
  isAtomic: true,
  params: ['k', 'v', 'slots', 'numTokens', 'numKvHeads', 'headDim', 'base', 'pageWords', 'isFloat'],
  code:
    EXACT_MATH +
    STORE +
    main(`
  let perToken = 2u * p.numKvHeads;
  for (var n = wid.x; n < p.numTokens * perToken; n += nwg.x) {
    let token = n / perToken;
    let head = (n - token * perToken) % p.numKvHeads;
    let isKey = n - token * perToken < p.numKvHeads;
    let source = select(p.v, p.k, isKey) + (token * p.numKvHeads + head) * p.headDim;
    storeHead(isKey, source, word(p.slots + token), head, tid);
  }`),
};

/** The kind, number and place of head `index` of a token: those of q, then of k, then of v. */
const FIND_HEAD = `let isQuery = index < p.numHeads;
    let isKey = !isQuery && index < p.numHeads + p.numKvHeads;
    var head = index;
    var at = p.q + (token * p.numHeads + index) * p.headDim;
    if (!isQuery) {
      head = (index - p.numHeads) % p.numKvHeads;
      at = select(p.v, p.k, isKey) + (token * p.numKvHeads + head) * p.headDim;
    }`;

/** Norms of heads, rotation and storing: one workgroup per head of q, k or v of a token. */
export const ROTATE_AND_STORE: KernelSource = {
  name: 'rotateAndStore',
  isAtomic: true,
  params: [
    'q',
    'k',
    'v',
    'slots',
    'cosSin',
    'numTokens',
    'numHeads',
    'numKvHeads',
    'headDim',
    'rotaryDim',
    'isHalves',
    'base',
    'pageWords',
    'isFloat',
    'qNorm',
    'kNorm',
    'hasQNorm',
    'hasKNorm',
    'epsilonF',
  ],
  code:
    EXACT_MATH +
    RMS_FACTOR +
    TURN +
    STORE +
    main(`
  let perToken = p.numHeads + 2u * p.numKvHeads;
  for (var n = wid.x; n < p.numTokens * perToken; n += nwg.x) {
    let token = n / perToken;
    let index = n - token * perToken;
    ${FIND_HEAD}
    let weight = select(p.kNorm, p.qNorm, isQuery);
    if ((isQuery && p.hasQNorm == 1u) || (isKey && p.hasKNorm == 1u)) {
      let factor = rmsFactor(at, p.headDim, p.epsilonF, tid);
      for (var d = tid; d < p.headDim; d += ${WORKGROUP}u) { put(at + d, num(at + d) * factor * num(weight + d)); }
      storageBarrier();
    }
    if (isQuery || isKey) {
      for (var pair = tid; pair < p.rotaryDim / 2u; pair += ${WORKGROUP}u) {
        turnPair(at, p.cosSin + token * p.rotaryDim, pair, p.rotaryDim, p.isHalves);
      }
      storageBarrier();
    }
    if (!isQuery) {
      storeHead(isKey, at, word(p.slots + token), head, tid);
    }
  }`),
};

/** `ROTATE_AND_STORE` without norms: one thread per pair of values, so that short heads leave no thread idle. */
export const ROTATE_AND_STORE_PAIRS: KernelSource = {
  name: 'rotateAndStorePairs',
  isAtomic: true,
  params: ROTATE_AND_STORE.params,
  code:
    EXACT_MATH +
    TURN +
    STORE +
    main(`
  let perToken = p.numHeads + 2u * p.numKvHeads;
  let pairs = (p.headDim + 1u) / 2u;
  let turned = p.rotaryDim / 2u;
  let count = p.numTokens * perToken * pairs;
  for (var n = wid.x * ${WORKGROUP}u + tid; n < count; n += nwg.x * ${WORKGROUP}u) {
    let pair = n % pairs;
    let index = n / pairs % perToken;
    let token = n / pairs / perToken;
    ${FIND_HEAD}
    var first = 2u * pair;
    var second = first + 1u;
    if ((isQuery || isKey) && pair < turned) {
      turnPair(at, p.cosSin + token * p.rotaryDim, pair, p.rotaryDim, p.isHalves);
      if (p.isHalves == 1u) { first = pair; second = pair + turned; }
    }
    if (!isQuery) {
      let slot = word(p.slots + token);
      let page = p.base + slot / 16u * p.pageWords;
      storeInHead(isKey, page, slot % 16u, head, first, num(at + first));
      if (second < p.headDim) { storeInHead(isKey, page, slot % 16u, head, second, num(at + second)); }
    }
  }`),
};

const ROW_MATH = `
fn halfBelow(value: f32) -> u32 {
  if (value == 0.0) { return 0u; }
  let bits = toHalf(value);
  if (!(fromHalf(bits) > value)) { return bits; }
  return select(bits - 1u, bits + 1u, bits >= 0x8000u);
}
fn scaleBits(value: f32) -> u32 {
  var bits = toHalf(value);
  if (fromHalf(bits) < value) { bits += 1u; }
  return select(bits, 0x7e00u, (bits & 0x7fffu) >= 0x7c00u);
}`;

/**
 * Packs one row per thread: a channel of the keys or a token of the values of one head, layer and page. `isQ4` chooses
 * the precision; see `PackPagesOp` for the arithmetic.
 */
export const PACK_PAGES: KernelSource = {
  name: 'packPages',
  isAtomic: true,
  params: [
    'pages',
    'numPages',
    'numLayers',
    'numKvHeads',
    'headDim',
    'isFloat',
    'isQ4',
    'fromBase',
    'fromPage',
    'fromLayer',
    'toBase',
    'toPage',
    'toLayer',
    'headBytes',
  ],
  code:
    EXACT_MATH +
    ROW_MATH +
    `
fn element(pageAt: u32, index: u32) -> f32 {
  if (p.isFloat == 1u) { return num(pageAt + index); }
  return fromHalf((word(pageAt + (index >> 1u)) >> ((index & 1u) * 16u)) & 0xffffu);
}
fn quant(x: f32, least: f32, step: f32) -> u32 {
  if (step == 0.0) { return 0u; }
  return u32(i32(round(divide(x - least, step)))) & 255u;
}` +
    main(`
  let rows = p.headDim + 16u;
  let count = p.numPages * p.numLayers * p.numKvHeads * rows;
  for (var n = wid.x * ${WORKGROUP}u + tid; n < count; n += nwg.x * ${WORKGROUP}u) {
    let row = n % rows;
    let head = n / rows % p.numKvHeads;
    let layer = n / rows / p.numKvHeads % p.numLayers;
    let pair = n / rows / p.numKvHeads / p.numLayers;
    let source = p.fromBase + word(p.pages + 2u * pair) * p.fromPage + layer * p.fromLayer;
    let start = (p.toBase + word(p.pages + 2u * pair + 1u) * p.toPage + layer * p.toLayer) * 4u + head * p.headBytes;
    let isKey = row < p.headDim;
    let length = select(p.headDim, 16u, isKey);
    let r = select(row - p.headDim, row, isKey);
    let numRows = select(16u, p.headDim, isKey);
    let first = select((p.numKvHeads + head) * p.headDim * 16u, head * p.headDim * 16u, isKey) + r * length;
    let perScale = select(2u, 4u, p.isQ4 == 1u);
    let bytesOfKeys = p.headDim * perScale + select(p.headDim * 16u, p.headDim * 8u, p.isQ4 == 1u);
    let part = start + select(bytesOfKeys, 0u, isKey);
    let numbers = part + numRows * perScale + r * select(length, length / 2u, p.isQ4 == 1u);
    var peakBits = 0u;
    var least = element(source, first);
    var most = least;
    var isBad = false;
    for (var i = 0u; i < length; i++) {
      let x = element(source, first + i);
      peakBits = max(peakBits, bitcast<u32>(x) & 0x7fffffffu);
      least = min(least, x);
      most = max(most, x);
    }
    isBad = peakBits > 0x7f800000u;
    if (p.isQ4 == 0u) {
      var bits = scaleBits(divide(bitcast<f32>(peakBits), 127.0));
      if (isBad || peakBits == 0x7f800000u) { bits = 0x7e00u; }
      putHalf((part >> 1u) + r, bits);
      var step = fromHalf(bits);
      if (bits >= 0x7c00u) { step = 0.0; }
      for (var i = 0u; i < length; i++) { putByte(numbers + i, quant(element(source, first + i), 0.0, step)); }
    } else {
      var minBits = halfBelow(least);
      let isMinFinite = !isBad && (minBits & 0x7c00u) != 0x7c00u;
      let low = fromHalf(select(0u, minBits, isMinFinite));
      var bits = scaleBits(divide(abs(most - low), 15.0));
      if (isBad || !isMinFinite || peakBits == 0x7f800000u) { bits = 0x7e00u; }
      putHalf((part >> 1u) + r, bits);
      putHalf((part >> 1u) + numRows + r, select(0u, minBits, isMinFinite));
      var step = fromHalf(bits);
      if (bits >= 0x7c00u) { step = 0.0; }
      for (var i = 0u; i < length / 2u; i++) {
        let a = quant(element(source, first + i), low, step) & 15u;
        let b = quant(element(source, first + i + length / 2u), low, step) & 15u;
        putByte(numbers + i, a | (b << 4u));
      }
    }
  }`),
};
