import type { TensorTypeName } from '../core/tensor-type.ts';
import { quantFormats, quantizeRow, rowBytes } from '../quant/index.ts';
import { fillBlocks } from './any-blocks.ts';
import { type KernelPack, type KernelPackFactory, type KvRegion, kvLayerBytes, type Offset } from './contract.ts';

const NUM_ROWS = 20; // more than a row group of every pack
const NUM_COLS = 256;
const NUM_TOKENS = 17; // one more than a tile of every pack
const ALL = [...Array(NUM_TOKENS).keys()];
const ALONE = 6;
/** The tokens that the slow reference computes: rows do not depend on each other. */
const SAMPLE = [0, ALONE, NUM_TOKENS - 1];
const HEADS = { numHeads: 4, numKvHeads: 2, headDim: 32 };
/** Another order of sums differs by about 1e-6 of the largest result; a wrong kernel by far more. */
const TOLERANCE = 1e-4;

const WAVES = Float32Array.from({ length: 8192 }, (_, i) => Math.sin(i * 0.7) + 0.3 * Math.cos(i * 2.3));
/** Smooth, varied and the same on every platform. */
const wave = (length: number, seed: number): Float32Array => WAVES.subarray(seed * 401, seed * 401 + length);

/** Results in the arena: `width` values for each token in `tokens`. */
interface Place {
  readonly name: string;
  readonly tokens: readonly number[];
  readonly width: number;
  readonly out: Offset;
}

/** One kind of problem: records operations for each group of tokens and returns the places of the results. */
type Probe = (pack: KernelPack, groups: readonly (readonly number[])[]) => Place[];

const put = (pack: KernelPack, values: Float32Array): Offset => {
  const offset = pack.arena.allocate(values.byteLength, 'self-check');
  pack.arena.f32(offset, values.length).set(values);
  return offset;
};
const putInts = (pack: KernelPack, values: readonly number[]): Offset => {
  const offset = pack.arena.allocate(values.length * 4, 'self-check');
  pack.arena.i32(offset, values.length).set(values);
  return offset;
};
const room = (pack: KernelPack, length: number): Offset => pack.arena.allocate(length * 4, 'self-check');
/** Writes the rows of `tokens`, `width` values each. */
const putRows = (pack: KernelPack, tokens: readonly number[], width: number, seed: number): Offset => {
  const values = new Float32Array(tokens.length * width);
  tokens.forEach((token, i) =>
    values.set(wave(NUM_TOKENS * width, seed).subarray(token * width, (token + 1) * width), i * width),
  );
  return put(pack, values);
};

function anyBlocks(type: TensorTypeName): Uint8Array {
  const bytes = new Uint8Array(NUM_ROWS * rowBytes(type, NUM_COLS));
  fillBlocks(bytes, 0);
  return bytes;
}

const createMatmulProbe = (type: TensorTypeName, index: number): Probe => {
  const { blockSize, blockBytes } = quantFormats[type];
  // Plain values, and blocks without half-precision scales: arbitrary bytes would be extreme values.
  const isFitted = blockSize === 1 || blockBytes % 2 === 1;
  const bytes = isFitted ? quantizeRow(type, wave(NUM_ROWS * NUM_COLS, 1)) : anyBlocks(type);
  return (pack, groups) => {
    const weight = pack.loadMatrix({
      name: 'self-check',
      type,
      numRows: NUM_ROWS,
      numCols: NUM_COLS,
      readInto: (target, at) => target.set(bytes.subarray(at, at + target.length)),
    });
    const rows = room(pack, 2 * NUM_COLS);
    pack.gatherRows({ table: weight, ids: putInts(pack, [18, 3]), out: rows, numRows: 2, scale: 1 });
    const products = groups.map((tokens): Place => {
      const out = room(pack, tokens.length * NUM_ROWS);
      const x = putRows(pack, tokens, NUM_COLS, 2);
      pack.matmul({ x, numTokens: tokens.length, outputs: [{ weight, out, bias: null, accumulate: false }] });
      return { name: `matmul ${type}`, tokens, width: NUM_ROWS, out };
    });
    // The operations around the product are the same for all types, and slow in the reference: checked once, for one token.
    const fusedGroups = index > 0 ? [] : groups.map((tokens) => (tokens === SAMPLE ? [ALONE] : tokens));
    const fused = fusedGroups.map((tokens): Place => {
      const [count, numTokens] = [tokens.length * NUM_ROWS, tokens.length];
      const [out, scratch, x] = [room(pack, count), room(pack, count), putRows(pack, tokens, NUM_COLS, 2)];
      const norm = { weight: put(pack, wave(NUM_COLS, 7)), epsilon: 1e-5, scratch: room(pack, numTokens * NUM_COLS) };
      const [gate, up] = [4, 5].map((seed) => ({ weight, bias: put(pack, wave(NUM_ROWS, seed)) }));
      pack.gatedMatmul({ x, norm, numTokens, gate: gate!, up: up!, out, scratch, activation: 'silu' });
      return { name: `norm, matmul ${type} and gate`, tokens, width: NUM_ROWS, out };
    });
    return [...products, ...fused, { name: `rows of ${type}`, tokens: [0], width: 2 * NUM_COLS, out: rows }];
  };
};

/** A group of n is the last n tokens: many rows are a prompt, one is a decode step. */
const probeAttention: Probe = (pack, groups) => {
  const { numHeads, numKvHeads, headDim } = HEADS;
  const layerBytes = kvLayerBytes(numKvHeads, headDim, 'f16');
  const base = pack.arena.allocate(2 * layerBytes, 'self-check');
  const kv: KvRegion = { base, pageBytes: layerBytes, layerBytes, numPages: 2, numKvHeads, headDim, precision: 'f16' };
  const width = numHeads * headDim;
  const k = put(pack, wave(NUM_TOKENS * numKvHeads * headDim, 3));
  const v = put(pack, wave(NUM_TOKENS * numKvHeads * headDim, 4));
  const turn = { headDim, rotaryDim: headDim, pairing: 'halves' } as const;
  pack.rope({ ...turn, x: k, cosSin: putRows(pack, ALL, headDim, 8), numTokens: NUM_TOKENS, numHeads: numKvHeads });
  pack.writeKv({ kv, layer: 0, k, v, slots: putInts(pack, ALL), numTokens: NUM_TOKENS });
  return groups.flatMap(({ length: numTokens }): Place[] => {
    const tokens = ALL.slice(-numTokens);
    const q = putRows(pack, tokens, width, 5);
    pack.rope({ ...turn, x: q, cosSin: putRows(pack, tokens, headDim, 8), numTokens, numHeads });
    const sequences = putInts(pack, [0, numTokens, NUM_TOKENS, 0]);
    const pageTables = putInts(pack, [0, 1]);
    return [false, true].map((seesAll) => {
      const out = room(pack, numTokens * width);
      const rule = { scale: 0.2, window: 0, softcap: 0, seesAll };
      pack.attention({ kv, layer: 0, q, out, numHeads, sequences, numSequences: 1, pageTables, ...rule });
      return { name: seesAll ? 'attention to all' : 'attention', tokens, width, out };
    });
  });
};

const probeElementwise: Probe = (pack, groups) =>
  groups.map((tokens): Place => {
    const count = tokens.length * NUM_COLS;
    const out = room(pack, count);
    const x = putRows(pack, tokens, NUM_COLS, 6);
    const weight = put(pack, wave(NUM_COLS, 7));
    pack.rmsNorm({ x, weight, out, numRows: tokens.length, dim: NUM_COLS, epsilon: 1e-5 });
    pack.gatedActivation({ gate: out, up: x, out, count, activation: 'silu' });
    pack.add({ x: out, y: x, out, count });
    const bias = put(pack, wave(NUM_COLS, 4));
    pack.layerNorm({ x: out, weight, bias, out, numRows: tokens.length, dim: NUM_COLS, epsilon: 1e-5 });
    pack.gelu({ x: out, count, formula: 'erf' });
    return { name: 'norm and activation', tokens, width: NUM_COLS, out };
  });

/** Its result may round to the next half, 1e-3: beside 16 times the input that is within the tolerance. */
const probeRoundedGelu: Probe = (pack, groups) =>
  groups.map((tokens): Place => {
    const count = tokens.length * NUM_COLS;
    const [out, x] = [putRows(pack, tokens, NUM_COLS, 6), putRows(pack, tokens, NUM_COLS, 6)];
    pack.gelu({ x: out, count, formula: 'tanh' });
    pack.scale({ x, count, factor: 16 });
    pack.add({ x: out, y: x, out, count });
    return { name: 'rounded gelu', tokens, width: NUM_COLS, out };
  });

interface Solution {
  readonly place: Place;
  readonly values: Float32Array;
}

async function solve(
  factory: KernelPackFactory,
  numThreads: number,
  probes: readonly Probe[],
  groups: readonly (readonly number[])[],
): Promise<Solution[]> {
  const arenaBytes = (1 + probes.length) << 18;
  const pack = await factory.create({ arenaBytes, numThreads, maxTokens: 32, maxCols: NUM_COLS });
  try {
    const places = probes.flatMap((probe) => probe(pack, groups));
    await pack.sync();
    return places.map((place) => ({
      place,
      values: pack.arena.f32(place.out, place.tokens.length * place.width).slice(),
    }));
  } finally {
    await pack.dispose();
  }
}

function findDifference({ place, values }: Solution, { place: reference, values: expected }: Solution): string | null {
  const { name, width } = place;
  const peak = expected.reduce((max, value) => Math.max(max, Math.abs(value)), 0);
  for (const [row, token] of reference.tokens.entries()) {
    const ours = place.tokens.indexOf(token);
    if (ours < 0) continue;
    for (let i = 0; i < width; i++) {
      const [value, expectedValue] = [values[ours * width + i]!, expected[row * width + i]!];
      if (Math.abs(value - expectedValue) <= TOLERANCE * peak) continue; // false for NaN
      return `${name}, ${place.tokens.length} rows: value ${i} of row ${token} is ${value}, the reference has ${expectedValue}`;
    }
  }
  return null;
}

/**
 * Solves small problems with both packs: products of the given types with many tokens and one, with and without norm and
 * gate, attention, norms and activations. Returns the first difference with its numbers, or null. A pack from an unknown
 * compiler for an unknown processor must prove itself before use. Takes about 20 ms for the types of one model.
 */
export async function findKernelFault(
  factory: KernelPackFactory,
  reference: KernelPackFactory,
  numThreads: number,
  types: Iterable<TensorTypeName> = Object.keys(quantFormats) as TensorTypeName[],
): Promise<string | null> {
  const probes = [...[...types].map(createMatmulProbe), probeAttention, probeElementwise, probeRoundedGelu];
  const references = await solve(reference, 1, probes, [SAMPLE]);
  for (const solution of await solve(factory, numThreads, probes, [ALL, [ALONE]])) {
    const fault = findDifference(
      solution,
      references.find(({ place }) => place.name === solution.place.name)!,
    );
    if (fault !== null) return fault;
  }
  return null;
}
