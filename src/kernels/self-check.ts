import type { TensorTypeName } from '../core/tensor-type.ts';
import { quantFormats, quantizeRow } from '../quant/index.ts';
import { type KernelPack, type KernelPackFactory, type KvRegion, kvLayerBytes, type Offset } from './contract.ts';

const NUM_ROWS = 20;
const NUM_COLS = 256;
const NUM_TOKENS = 17; // a whole tile of every pack, and one more
const HEADS = { numHeads: 4, numKvHeads: 2, headDim: 32 };
/** Sums in another order differ by about 1e-6 of the largest result; a wrong kernel by far more. */
const TOLERANCE = 1e-4;

/** Smooth, varied and the same everywhere. */
const wave = (length: number, seed: number): Float32Array =>
  Float32Array.from({ length }, (_, i) => Math.sin(i * 0.7 + seed) + 0.3 * Math.cos(i * 2.3 * seed));

/** One problem: records operations and says where its result will be. */
interface Probe {
  readonly name: string;
  run(pack: KernelPack): { out: Offset; length: number };
}

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

const matmulProbe = (type: TensorTypeName): Probe => ({
  name: `matmul ${type}`,
  run(pack) {
    const bytes = quantizeRow(type, wave(NUM_ROWS * NUM_COLS, 1));
    const weight = pack.loadMatrix({
      name: 'self-check',
      type,
      numRows: NUM_ROWS,
      numCols: NUM_COLS,
      readInto: (target, at) => target.set(bytes.subarray(at, at + target.length)),
    });
    const length = NUM_TOKENS * NUM_ROWS;
    const out = room(pack, length);
    const x = put(pack, wave(NUM_TOKENS * NUM_COLS, 2));
    pack.matmul({ x, numTokens: NUM_TOKENS, outputs: [{ weight, out, bias: null, accumulate: false }] });
    return { out, length };
  },
});

const attentionProbe: Probe = {
  name: 'attention',
  run(pack) {
    const { numHeads, numKvHeads, headDim } = HEADS;
    const layerBytes = kvLayerBytes(numKvHeads, headDim, 'f16');
    const base = pack.arena.allocate(2 * layerBytes, 'self-check');
    const kv: KvRegion = {
      base,
      pageBytes: layerBytes,
      layerBytes,
      numPages: 2,
      numKvHeads,
      headDim,
      precision: 'f16',
    };
    const rows = NUM_TOKENS * numHeads * headDim;
    const kvRows = NUM_TOKENS * numKvHeads * headDim;
    const slots = putInts(pack, [...Array(NUM_TOKENS).keys()]);
    const out = room(pack, rows);
    pack.writeKv({
      kv,
      layer: 0,
      k: put(pack, wave(kvRows, 3)),
      v: put(pack, wave(kvRows, 4)),
      slots,
      numTokens: NUM_TOKENS,
    });
    pack.attention({
      kv,
      layer: 0,
      q: put(pack, wave(rows, 5)),
      out,
      numHeads,
      sequences: putInts(pack, [0, NUM_TOKENS, NUM_TOKENS, 0]),
      numSequences: 1,
      pageTables: putInts(pack, [0, 1]),
      scale: 0.2,
      window: 0,
      softcap: 0,
    });
    return { out, length: rows };
  },
};

const elementwiseProbe: Probe = {
  name: 'norm and activation',
  run(pack) {
    const length = NUM_TOKENS * NUM_COLS;
    const out = room(pack, length);
    const x = put(pack, wave(length, 6));
    pack.rmsNorm({ x, weight: put(pack, wave(NUM_COLS, 7)), out, numRows: NUM_TOKENS, dim: NUM_COLS, epsilon: 1e-5 });
    pack.gatedActivation({ gate: out, up: x, out, count: length, activation: 'silu' });
    return { out, length };
  },
};

const PROBES = [...(Object.keys(quantFormats) as TensorTypeName[]).map(matmulProbe), attentionProbe, elementwiseProbe];

async function solve(factory: KernelPackFactory, numThreads: number): Promise<Float32Array[]> {
  const pack = await factory.create({ arenaBytes: 1 << 23, numThreads, maxTokens: 32, maxCols: NUM_COLS });
  try {
    const places = PROBES.map((probe) => probe.run(pack));
    await pack.sync();
    return places.map(({ out, length }) => pack.arena.f32(out, length).slice());
  } finally {
    await pack.dispose();
  }
}

/**
 * Solves small problems of every kind with both packs. Returns the first that differs, with the numbers, or null: a pack
 * compiled by an unknown compiler for an unknown processor must show that it computes before it is trusted.
 */
export async function findKernelFault(
  factory: KernelPackFactory,
  reference: KernelPackFactory,
  numThreads: number,
): Promise<string | null> {
  const [ours, theirs] = [await solve(factory, numThreads), await solve(reference, 1)];
  for (const [i, { name }] of PROBES.entries()) {
    const expected = theirs[i]!;
    const peak = expected.reduce((max, value) => Math.max(max, Math.abs(value)), 0);
    const at = ours[i]!.findIndex((value, k) => !(Math.abs(value - expected[k]!) <= TOLERANCE * peak));
    if (at >= 0) return `${name}: value ${at} is ${ours[i]![at]}, the reference says ${expected[at]}`;
  }
  return null;
}
