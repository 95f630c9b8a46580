import { z } from 'zod';
import { ADAPTER_TARGETS, type LowRankFactors } from '../../adapters/types.ts';
import { RuvLLMError } from '../../core/errors.ts';
import { toBase64 } from '../../memory/common/float-packing.ts';
import { name } from '../../memory/schemas/primitives.ts';
import { bytesOf, unpack } from './packing.ts';

/** Adapters of one bundle, and the characters of all together. */
export const MAX_SHARED_ADAPTERS = 4;
export const MAX_ADAPTER_CHARS = 2 << 20;
/** As of trained adapters. */
const MAX_RANK = 16;
const MAX_MATRICES = 1024;
const MAX_SIDE = 1 << 20;
/** Of one number; a larger one would overflow floats when multiplied. */
const MAX_STEP = 1e3;
const MAX_CODE = 127;

const codes = z.string().max(MAX_ADAPTER_CHARS);
const steps = z.array(z.number().min(0).max(MAX_STEP)).min(1).max(MAX_RANK);

const sharedMatrix = z.strictObject({
  target: z.enum(ADAPTER_TARGETS),
  layer: z.int().min(-1).max(4095),
  numCols: z.int().min(1).max(MAX_SIDE),
  numRows: z.int().min(1).max(MAX_SIDE),
  /** i8[rank × numCols] in base64, and the value of one step of each of its rows. */
  a: codes,
  aSteps: steps,
  /** i8[rank × numRows], the columns of B one after the other, and the value of one step of each. */
  b: codes,
  bSteps: steps,
});

/** The change of a model's weights that a node trained: ΔW = B·A for each matrix. */
export const adapterEvidence = z.strictObject({
  /** Its name on the sender. */
  model: name,
  /** SHA-256 of the model file. */
  base: z.string().regex(/^[0-9a-f]{64}$/),
  architecture: name,
  matrices: z.array(sharedMatrix).min(1).max(MAX_MATRICES),
});
export type AdapterEvidence = z.infer<typeof adapterEvidence>;

/** A trained adapter to share. */
export interface SharedAdapter {
  readonly model: string;
  /** SHA-256 of the model file. */
  readonly base: string;
  readonly architecture: string;
  readonly factors: readonly LowRankFactors[];
}

/** Rounds vectors of equal length to 8 bits, each with its own step. */
function pack(vectors: readonly Float32Array[]): { readonly text: string; readonly steps: number[] } {
  const all = new Int8Array(vectors.reduce((sum, { length }) => sum + length, 0));
  const each: number[] = [];
  let at = 0;
  for (const vector of vectors) {
    const largest = vector.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
    const step = largest / MAX_CODE;
    each.push(step);
    for (const value of vector) all[at++] = step === 0 ? 0 : Math.round(value / step);
  }
  return { text: toBase64(bytesOf(all)), steps: each };
}

/** f32[rank × length] */
function unpackRows(text: string, each: readonly number[], length: number, what: string): Float32Array {
  const all = new Int8Array(unpack(text, what, 1).buffer);
  if (all.length !== each.length * length)
    throw new RuvLLMError('invalid_option', `bundle: "${what}" has ${all.length} numbers, not ${each.length * length}`);
  return Float32Array.from(all, (code, i) => code * each[Math.floor(i / length)]!);
}

const rowsOf = (values: Float32Array, rank: number): Float32Array[] => {
  const length = values.length / rank;
  return Array.from({ length: rank }, (_, row) => values.subarray(row * length, (row + 1) * length));
};

/** Also turns rows of columns back: `numRows` and `numCols` are those of `values`. */
function transposed(values: Float32Array, numRows: number, numCols: number): Float32Array {
  const out = new Float32Array(values.length);
  for (let i = 0; i < numRows; i++) for (let j = 0; j < numCols; j++) out[j * numRows + i] = values[i * numCols + j]!;
  return out;
}

export const toAdapterEvidence = ({ factors, ...shared }: SharedAdapter): AdapterEvidence => ({
  ...shared,
  matrices: factors.map(({ target, layer, numCols, numRows, rank, scale, a, b }) => {
    const rows = pack(rowsOf(a, rank));
    const columns = pack(
      rowsOf(
        transposed(b, numRows, rank).map((value) => value * scale),
        rank,
      ),
    );
    return {
      target,
      layer,
      numCols,
      numRows,
      a: rows.text,
      aSteps: rows.steps,
      b: columns.text,
      bSteps: columns.steps,
    };
  }),
});

/** Throws for factors of another size than they say. */
export const fromAdapterEvidence = ({ matrices }: AdapterEvidence): LowRankFactors[] =>
  matrices.map(({ target, layer, numCols, numRows, a, aSteps, b, bSteps }) => {
    const rank = aSteps.length;
    if (bSteps.length !== rank)
      throw new RuvLLMError('invalid_option', `bundle: ${target} of layer ${layer} has ranks ${rank} and ${bSteps.length}`); // prettier-ignore
    return {
      target,
      layer,
      numCols,
      numRows,
      rank,
      scale: 1,
      a: unpackRows(a, aSteps, numCols, 'a'),
      b: transposed(unpackRows(b, bSteps, numRows, 'b'), rank, numRows),
    };
  });

const siteOf = ({ target, layer }: Pick<LowRankFactors, 'target' | 'layer'>): string => `${target}/${layer}`;

/** Throws for adapters that cannot be read; done before anything is stored. */
export function checkAdapterEvidence(adapters: readonly AdapterEvidence[]): void {
  const numChars = adapters.reduce((sum, one) => sum + JSON.stringify(one).length, 0);
  if (numChars > MAX_ADAPTER_CHARS)
    throw new RuvLLMError('limit_exceeded', `the adapters of the bundle have ${numChars} characters, the limit is ${MAX_ADAPTER_CHARS}`, { data: { numChars, maxChars: MAX_ADAPTER_CHARS } }); // prettier-ignore
  for (const one of adapters) {
    const factors = fromAdapterEvidence(one);
    const sites = new Set(factors.map(siteOf));
    if (sites.size < factors.length)
      throw new RuvLLMError('invalid_option', `bundle: the adapter of ${one.model} changes a matrix twice`);
  }
}
