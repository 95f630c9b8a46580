import { floatToHalf, halfToFloat } from '../core/half.ts';
import { createRandom } from '../core/random.ts';
import { normals } from '../../test/support/random-values.ts';
import { kvLayerBytes, type KvPrecision, type KvRegion, PAGE_TOKENS } from './contract.ts';
import { EPSILON, expectClose, norm, type PackFixture } from './pack-fixture.contract.ts';

const NUM_LAYERS = 2;
export const LAYER = 1;

export interface Shape {
  readonly numHeads: number;
  readonly numKvHeads: number;
  readonly headDim: number;
  readonly window: number;
  readonly softcap: number;
  /** Precision of the pages; default f16. */
  readonly precision?: KvPrecision;
  /** Rows see later tokens too: whole sequences only. */
  readonly seesAll?: boolean;
  /** One score without a value for each head. */
  readonly sinks?: readonly number[];
}

/** q, k and v of all tokens of a sequence, and its pages. */
export interface Sequence {
  readonly length: number;
  readonly q: Float32Array;
  readonly k: Float32Array;
  readonly v: Float32Array;
  readonly pageIds: readonly number[];
}

const scaleOf = ({ headDim }: Shape): number => 1 / Math.sqrt(headDim);

/** Repeats a period, which is cheaper than drawing; no width divides the period, so all rows differ. */
function manyNormals(length: number, seed: number, scale = 1): Float32Array {
  const period = normals(4099, seed, scale);
  const values = new Float32Array(length);
  for (let at = 0; at < length; at += period.length) values.set(period.subarray(0, length - at), at);
  return values;
}

const sequenceCache = new Map<string, Sequence[]>();

/** Sequences of the given lengths over shuffled pages, so that none is contiguous; cached for all packs of a test file. */
export function sequencesOf(shape: Shape, lengths: readonly number[], numPages: number): Sequence[] {
  const key = JSON.stringify([shape, lengths, numPages]);
  let sequences = sequenceCache.get(key);
  if (sequences === undefined) sequenceCache.set(key, (sequences = makeSequences(shape, lengths, numPages)));
  return sequences;
}

function makeSequences(shape: Shape, lengths: readonly number[], numPages: number): Sequence[] {
  const random = createRandom(lengths.length);
  const free = Array.from({ length: numPages }, (_, i) => ({ i, key: random.next() }))
    .sort((a, b) => a.key - b.key)
    .map(({ i }) => i);
  return lengths.map((length, i) => ({
    length,
    q: manyNormals(length * shape.numHeads * shape.headDim, 3 * i + 1, 2),
    k: manyNormals(length * shape.numKvHeads * shape.headDim, 3 * i + 2),
    v: manyNormals(length * shape.numKvHeads * shape.headDim, 3 * i + 3),
    pageIds: free.splice(0, Math.ceil(length / PAGE_TOKENS)),
  }));
}

/** A region filled with `filler`: pages are reused without clearing, even after a failed sequence. */
export function makeRegion({ pack }: PackFixture, shape: Shape, numPages: number, filler = NaN): KvRegion {
  const { numKvHeads, headDim, precision = 'f16' } = shape;
  const layerBytes = kvLayerBytes(numKvHeads, headDim, precision);
  const pageBytes = NUM_LAYERS * layerBytes;
  const base = pack.arena.allocate(numPages * pageBytes, 'pages');
  if (precision === 'f32') pack.arena.f32(base, (numPages * pageBytes) / 4).fill(filler);
  else pack.arena.u16(base, (numPages * pageBytes) / 2).fill(floatToHalf(filler));
  return { base, pageBytes, layerBytes, numPages, numKvHeads, headDim, precision };
}

export interface Part {
  readonly sequence: Sequence;
  readonly start: number;
  readonly end: number;
  readonly from?: number;
}

/** Writes tokens [start, end) of each sequence and returns attention rows from `from` on (default `start`). */
export async function runStep(
  fixture: PackFixture,
  kv: KvRegion,
  shape: Shape,
  parts: readonly Part[],
): Promise<Float32Array> {
  const { pack, put, putInts, output } = fixture;
  const concat = (rows: readonly Float32Array[]): Float32Array => {
    const all = new Float32Array(rows.reduce((sum, { length }) => sum + length, 0));
    let at = 0;
    for (const values of rows) all.set(values, (at += values.length) - values.length);
    return all;
  };
  const slots: number[] = [];
  const sequences: number[] = [];
  const pageTables: number[] = [];
  let numRows = 0;
  for (const { sequence, start, end, from = start } of parts) {
    sequences.push(numRows, end - from, end, pageTables.length);
    numRows += end - from;
    pageTables.push(...sequence.pageIds);
    for (let t = start; t < end; t++) {
      slots.push(sequence.pageIds[Math.floor(t / PAGE_TOKENS)]! * PAGE_TOKENS + (t % PAGE_TOKENS));
    }
  }
  const kvWidth = shape.numKvHeads * shape.headDim;
  const width = shape.numHeads * shape.headDim;
  const written = (name: 'k' | 'v'): Float32Array =>
    concat(parts.map(({ sequence, start, end }) => sequence[name].subarray(start * kvWidth, end * kvWidth)));
  const queries = parts.map(({ sequence, start, end, from = start }) => sequence.q.subarray(from * width, end * width));
  const [k, v] = [put(written('k')), put(written('v'))];
  pack.writeKv({ kv, layer: LAYER, k, v, slots: putInts(slots), numTokens: slots.length });
  const out = output(numRows * width);
  pack.attention({
    kv,
    layer: LAYER,
    q: put(concat(queries)),
    out: out.offset,
    numHeads: shape.numHeads,
    sequences: putInts(sequences),
    numSequences: parts.length,
    pageTables: putInts(pageTables),
    scale: scaleOf(shape),
    window: shape.window,
    softcap: shape.softcap,
    ...(shape.seesAll === undefined ? {} : { seesAll: shape.seesAll }),
    ...(shape.sinks === undefined ? {} : { sinks: put(shape.sinks) }),
  });
  return out.read();
}

const roundings = new WeakMap<Float32Array, Float32Array>();

/** The values after rounding to the precision of the pages. */
function asStored(values: Float32Array, precision: KvPrecision | undefined): Float32Array {
  if (precision === 'f32') return values;
  let rounded = roundings.get(values);
  if (rounded === undefined) {
    rounded = values.map((x) => halfToFloat(floatToHalf(x)));
    roundings.set(values, rounded);
  }
  return rounded;
}

const plainRows = new WeakMap<Sequence, Map<number, PlainRow>>();

/** Each row is computed once: a sequence belongs to one shape (`sequencesOf`). */
function plainRow(shape: Shape, sequence: Sequence, t: number): PlainRow {
  let rows = plainRows.get(sequence);
  if (rows === undefined) plainRows.set(sequence, (rows = new Map()));
  let row = rows.get(t);
  if (row === undefined) rows.set(t, (row = attendPlainly(shape, sequence, t)));
  return row;
}

interface PlainRow {
  readonly out: readonly number[];
  readonly tolerance: number;
}

/** Plain softmax attention of token t over the rounded k and v, and the tolerance for packs. */
function attendPlainly(shape: Shape, sequence: Sequence, t: number): PlainRow {
  const { numHeads, numKvHeads, headDim, window, softcap } = shape;
  const [k, v] = [asStored(sequence.k, shape.precision), asStored(sequence.v, shape.precision)];
  const scale = scaleOf(shape);
  const last = shape.seesAll === true ? sequence.length - 1 : t;
  const out: number[] = [];
  let tolerance = 0;
  for (let head = 0; head < numHeads; head++) {
    const kvHead = Math.floor((head * numKvHeads) / numHeads);
    const q = sequence.q.subarray((t * numHeads + head) * headDim, (t * numHeads + head + 1) * headDim);
    const sizeOfQ = norm(q);
    const sums = new Float64Array(headDim);
    let [total, peakScore, peakValue] = [shape.sinks === undefined ? 0 : Math.exp(shape.sinks[head]!), 0, 0];
    for (let token = window > 0 ? Math.max(0, t - window + 1) : 0; token <= last; token++) {
      const at = (token * numKvHeads + kvHead) * headDim;
      let score = 0;
      for (let d = 0; d < headDim; d++) score += k[at + d]! * q[d]!;
      score *= scale;
      if (softcap > 0) score = softcap * Math.tanh(score / softcap);
      const weight = Math.exp(score);
      total += weight;
      for (let d = 0; d < headDim; d++) {
        sums[d]! += weight * v[at + d]!;
        peakValue = Math.max(peakValue, Math.abs(v[at + d]!));
      }
      peakScore = Math.max(peakScore, sizeOfQ * norm(k, at, at + headDim) * scale);
    }
    for (const sum of sums) out.push(sum / total);
    tolerance = Math.max(tolerance, EPSILON * peakValue * (32 + 8 * peakScore));
  }
  return { out, tolerance };
}

/** Fails if a row of `result` differs from plain attention; with `sample`, checks only those tokens. */
export function expectPlain(
  shape: Shape,
  parts: readonly Part[],
  result: Float32Array,
  sample: (t: number) => boolean = () => true,
): void {
  const width = shape.numHeads * shape.headDim;
  let row = 0;
  for (const { sequence, start, end, from = start } of parts) {
    for (let t = from; t < end; t++, row++) {
      if (!sample(t)) continue;
      const { out, tolerance } = plainRow(shape, sequence, t);
      const what = `${JSON.stringify(shape)}, token ${t} of ${sequence.length}`;
      expectClose(result.subarray(row * width, (row + 1) * width), out, () => tolerance, what);
    }
  }
}
