import { RuvLLMError } from '../core/errors.ts';
import type { RopeOp } from '../kernels/contract.ts';
import type { ModelFile } from './types.ts';
import { readCount } from './read-count.ts';
import { readVector } from './weight-loader.ts';

/** One rotation of heads: angle of pair i at a position = position * frequencies[i]. */
export interface RopeVariant {
  readonly pairing: RopeOp['pairing'];
  readonly rotaryDim: number;
  readonly frequencies: Float64Array;
  /** Multiplies cosine and sine, and so the scores twice. */
  readonly magnitude: number;
}

export const DEFAULT_ROPE_BASE = 10000;
// Turns over the original context above which YaRN keeps a frequency, and below which it stretches it (§3.2).
const YARN_FAST_TURNS = 32;
const YARN_SLOW_TURNS = 1;

/** The rotation described by the metadata, including scaling and per-pair factors. */
export function readRope(file: ModelFile, pairing: RopeOp['pairing']): RopeVariant {
  const { metadata } = file.gguf;
  const { architecture, headDim, contextLength } = file.shape;
  const key = (name: string): string => `${architecture}.rope.${name}`;
  const rotaryDim = readCount(metadata, key('dimension_count'), headDim, headDim);
  if (rotaryDim % 2 !== 0) fail(`${key('dimension_count')} is ${rotaryDim}, must be even`);
  const base = positive(key('freq_base'), metadata.number(key('freq_base'), DEFAULT_ROPE_BASE));
  const type = metadata.string(key('scaling.type'), 'linear');
  const stretch = Object.hasOwn(scalings, type) ? scalings[type] : undefined; // A file may name "toString".
  if (stretch === undefined) {
    const types = Object.keys(scalings).join(', ');
    throw new RuvLLMError('unsupported', `rope scaling "${type.slice(0, 80)}" is not supported (known: ${types})`, {
      data: { type: type.slice(0, 80) },
    });
  }
  // Old files use 0 for "not scaled".
  const fileFactor = metadata.number(key('scaling.factor'), metadata.number(key('scale_linear'), 1)) || 1;
  const factor = positive(key('scaling.factor'), fileFactor);
  const originalContext = readCount(metadata, key('scaling.original_context_length'), 2 ** 27, contextLength);
  const { factors, magnitude } = stretch({ rotaryDim, base, factor, originalContext });
  const pairFactors = readPairFactors(file, rotaryDim / 2, originalContext);
  return {
    pairing,
    rotaryDim,
    frequencies: plainFrequencies(rotaryDim, base).map((value, i) => (value * factors(i)) / (pairFactors?.[i] ?? 1)),
    magnitude: magnitude * positive(key('scaling.attn_factor'), metadata.number(key('scaling.attn_factor'), 1)),
  };
}

/** A rotation without scaling, for windowed layers beside scaled global ones. */
export function plainRope(rotaryDim: number, base: number, pairing: RopeOp['pairing']): RopeVariant {
  positive('the rope base', base);
  return { pairing, rotaryDim, frequencies: plainFrequencies(rotaryDim, base), magnitude: 1 };
}

/** Angles of the first positions of a rope, filled in as they are asked for: cosines of a prompt of 512 tokens take 0.7 ms. */
interface AngleTable {
  readonly rows: Float32Array;
  readonly isFilled: Uint8Array;
}
const tables = new WeakMap<RopeVariant, AngleTable>();
/** 4 MiB a rope; positions beyond are computed each time. */
const TABLE_VALUES = 2 ** 20;

function tableOf(rope: RopeVariant): AngleTable {
  let table = tables.get(rope);
  if (table === undefined) {
    const numPositions = Math.floor(TABLE_VALUES / rope.rotaryDim);
    table = { rows: new Float32Array(numPositions * rope.rotaryDim), isFilled: new Uint8Array(numPositions) };
    tables.set(rope, table);
  }
  return table;
}

function writeAngles(
  { rotaryDim, frequencies, magnitude }: RopeVariant,
  position: number,
  out: Float32Array,
  at: number,
): void {
  for (let i = 0; i < rotaryDim / 2; i++) {
    const angle = position * frequencies[i]!;
    out[at + 2 * i] = Math.cos(angle) * magnitude;
    out[at + 2 * i + 1] = Math.sin(angle) * magnitude;
  }
}

/** Fills out[t * rotaryDim …] with cos, sin of pair 0, cos, sin of pair 1, … at positions[t]. */
export function writeCosSin(rope: RopeVariant, positions: ArrayLike<number>, out: Float32Array): void {
  const { rotaryDim } = rope;
  const { rows, isFilled } = tableOf(rope);
  for (let t = 0; t < positions.length; t++) {
    const position = positions[t]!;
    if (!Number.isInteger(position) || position >= isFilled.length) {
      writeAngles(rope, position, out, t * rotaryDim);
      continue;
    }
    const from = position * rotaryDim;
    if (isFilled[position] === 0) {
      writeAngles(rope, position, rows, from);
      isFilled[position] = 1;
    }
    for (let i = 0; i < rotaryDim; i++) out[t * rotaryDim + i] = rows[from + i]!;
  }
}

interface Scaling {
  readonly rotaryDim: number;
  readonly base: number;
  readonly factor: number;
  readonly originalContext: number;
}

interface Stretch {
  /** The multiplier of pair i's frequency. */
  factors(pair: number): number;
  readonly magnitude: number;
}

const linear = ({ factor }: Scaling): Stretch => ({ factors: () => 1 / factor, magnitude: 1 });

const scalings: Readonly<Record<string, (scaling: Scaling) => Stretch>> = {
  none: () => ({ factors: () => 1, magnitude: 1 }),
  linear,
  longrope: linear, // Its per-pair factors are tensors.
  yarn: ({ rotaryDim, base, factor, originalContext }) => {
    const pairWithTurns = (turns: number): number =>
      (rotaryDim * Math.log(originalContext / (turns * 2 * Math.PI))) / (2 * Math.log(base));
    const low = Math.max(0, Math.floor(pairWithTurns(YARN_FAST_TURNS)));
    const high = Math.min(rotaryDim - 1, Math.ceil(pairWithTurns(YARN_SLOW_TURNS)));
    const keptShare = (pair: number): number =>
      1 - Math.min(1, Math.max(0, (pair - low) / Math.max(0.001, high - low)));
    return {
      factors: (pair) => (1 - keptShare(pair)) / factor + keptShare(pair),
      magnitude: factor > 1 ? 1 + 0.1 * Math.log(factor) : 1,
    };
  },
};

/**
 * Divisors of each pair's frequency, if the file has them. One of two sets is chosen for all sequences: keys cached
 * with one set would be wrong with the other.
 */
function readPairFactors(file: ModelFile, numPairs: number, originalContext: number): Float32Array | null {
  const longOrShort = file.maxContextTokens > originalContext ? 'rope_factors_long' : 'rope_factors_short';
  const name = ['rope_freqs.weight', `${longOrShort}.weight`].find((name) => file.gguf.tensors.has(name));
  if (name === undefined) return null;
  const factors = readVector(file.gguf, name, numPairs);
  const bad = factors.findIndex((value) => !(value > 0 && value < Infinity));
  if (bad !== -1) fail(`tensor ${name}: factor ${bad} is ${factors[bad]}, must be positive`);
  return factors;
}

function plainFrequencies(rotaryDim: number, base: number): Float64Array {
  return Float64Array.from({ length: rotaryDim / 2 }, (_, i) => base ** ((-2 * i) / rotaryDim));
}

function positive(what: string, value: number): number {
  if (!(value > 0 && value < Infinity)) fail(`${what} is ${value}, must be positive`);
  return value;
}

function fail(message: string): never {
  throw new RuvLLMError('invalid_model_file', message);
}
