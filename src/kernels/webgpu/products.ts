import { RuvLLMError } from '../../core/errors.ts';
import type { ActivationRoundingName } from '../activation-rounding.ts';
import type { GatedMatmulOp, GatherRowsOp, InputNorm, MatmulOp, MatmulOutput, Offset } from '../contract.ts';
import type { Recorder } from './recorder.ts';
import type { GpuMatrix } from './weight-store.ts';
import type { WeightLayout } from './wgsl/layouts.ts';
import {
  ACCUMULATES,
  gatherKernel,
  HAS_BIAS,
  MAX_OUTPUTS,
  TILE_ROWS,
  tileKernel,
  vectorKernel,
  vectorRows,
  type VectorShape,
} from './wgsl/matmul.ts';
import { MAX_BLOCKS, PREPARED_VECTORS, prepareKernel } from './wgsl/prepare.ts';
import { MAP_KINDS } from './wgsl/elementwise.ts';

/** Most tokens of the kernels for few; more take tiles. */
const MOST_VECTOR_TOKENS = 8;
/** Rows that a group of lanes computes at once. */
const ROWS_PER_GROUP = 2;

/** Rows of one output in one buffer. */
interface Piece {
  readonly layout: WeightLayout;
  readonly rounding: ActivationRoundingName;
  readonly chunk: number;
  readonly words: { weight: number; rows: number; allRows: number; out: number; bias: number; flags: number };
}

export interface Products {
  matmul(op: MatmulOp): void;
  gatedMatmul(op: GatedMatmulOp): void;
  gatherRows(op: GatherRowsOp): void;
  /** Announces a matrix, so that scratch for its rounding is reserved. */
  reserve(matrix: GpuMatrix): void;
}

const kernels = new Map<string, ReturnType<typeof prepareKernel>>();
/** Generated once: making the source takes longer than recording a dispatch. */
function cached<Source extends ReturnType<typeof prepareKernel>>(key: string, make: () => Source): Source {
  let kernel = kernels.get(key) as Source | undefined;
  if (kernel === undefined) kernels.set(key, (kernel = make()));
  return kernel;
}

export function createProducts(
  recorder: Recorder,
  { maxTokens, maxCols, hasSubgroups }: { maxTokens: number; maxCols: number; hasSubgroups: boolean },
): Products {
  const { add, wrote, reserveScratch } = recorder;
  const regions = new Map<string, number>();
  const mostBlocks = Math.ceil(maxCols / 32);

  const formOf = ({ kind }: WeightLayout): 'integer' | 'float' => kind;
  function regionOf(layout: WeightLayout, rounding: ActivationRoundingName): number {
    const key = `${rounding} ${formOf(layout)}`;
    let region = regions.get(key);
    if (region === undefined) {
      region = reserveScratch(maxTokens * mostBlocks * PREPARED_VECTORS[formOf(layout)]);
      regions.set(key, region);
    }
    return region;
  }

  /** Normalizes and rounds rows for every rounding among the pieces. */
  function prepare(x: Offset, norm: InputNorm | null, numTokens: number, dim: number, pieces: readonly Piece[]): void {
    if (numTokens > maxTokens) {
      // The prepared rows would overwrite other scratch.
      throw new RuvLLMError('internal', `matmul of ${numTokens} tokens, this pack was created for ${maxTokens}`);
    }
    const blocks = Math.ceil(dim / 32);
    if (blocks > MAX_BLOCKS) {
      throw new RuvLLMError('unsupported', `a product over ${dim} columns: this pack supports ${MAX_BLOCKS * 32}`);
    }
    const seen = new Set<string>();
    for (const { layout, rounding } of pieces) {
      const form = formOf(layout);
      const key = `${rounding} ${form}`;
      if (seen.has(key)) continue;
      const kernel = cached(`prepare ${key}`, () => prepareKernel(rounding, form));
      const normWords = {
        weight: (norm?.weight ?? 0) / 4,
        hasNorm: norm === null ? 0 : 1,
        epsilonF: norm?.epsilon ?? 0,
      };
      const to = regionOf(layout, rounding);
      add(kernel, { ...normWords, x: x / 4, numRows: numTokens, dim, blocks, to }, [Math.min(numTokens, 65535)]);
      seen.add(key);
    }
  }

  function piecesOf({ weight, out, bias, accumulate }: MatmulOutput): Piece[] {
    const { layout, parts, numRows: allRows } = weight as GpuMatrix;
    return parts.map(({ firstRow, numRows, chunk, vector }) => ({
      ...layout,
      chunk,
      words: {
        weight: vector,
        rows: numRows,
        allRows,
        out: out / 4 + firstRow,
        bias: (bias ?? 0) / 4 + firstRow,
        flags: (bias === null ? 0 : HAS_BIAS) | (accumulate ? ACCUMULATES : 0),
      },
    }));
  }

  /** One dispatch for up to three pieces of the same kind in the same buffer. */
  function multiply(pieces: readonly Piece[], numTokens: number, blocks: number): void {
    for (let first = 0; first < pieces.length;) {
      const { layout, rounding, chunk } = pieces[first]!;
      let end = first + 1;
      while (
        end < pieces.length &&
        end - first < MAX_OUTPUTS &&
        pieces[end]!.layout === layout &&
        pieces[end]!.rounding === rounding &&
        pieces[end]!.chunk === chunk
      ) {
        end++;
      }
      dispatch(pieces.slice(first, end), numTokens, blocks);
      first = end;
    }
  }

  /** In the order of `PRODUCT_PARAMS`. */
  function paramsOf(pieces: readonly Piece[], numTokens: number, blocks: number, gate: number): number[] {
    const { layout, rounding } = pieces[0]!;
    const params = [numTokens, blocks, regionOf(layout, rounding), gate];
    for (let i = 0; i < MAX_OUTPUTS; i++) {
      const words = pieces[i]?.words;
      if (words === undefined) params.push(0, 0, 0, 0, 0, 0);
      else params.push(words.weight, words.rows, words.allRows, words.out, words.bias, words.flags);
    }
    return params;
  }

  const vectorTokens = (numTokens: number): VectorShape['numTokens'] =>
    numTokens === 1 ? 1 : numTokens === 2 ? 2 : numTokens <= 4 ? 4 : 8;

  function vectorOf(layout: WeightLayout, numTokens: number, isGated: boolean) {
    const tokens = vectorTokens(numTokens);
    const numRows = isGated ? 2 : tokens > 4 ? 1 : ROWS_PER_GROUP;
    const shape: VectorShape = { numTokens: tokens, numRows, isGated, hasSubgroups };
    const key = `vector ${layout.name} ${tokens} ${numRows} ${isGated} ${hasSubgroups}`;
    return { kernel: cached(key, () => vectorKernel(layout, shape)), perGroup: vectorRows(shape) };
  }

  function dispatch(pieces: readonly Piece[], numTokens: number, blocks: number): void {
    const { layout, chunk } = pieces[0]!;
    const params = paramsOf(pieces, numTokens, blocks, 0);
    const unitsOf = (perUnit: number): number =>
      pieces.reduce((sum, { words }) => sum + Math.ceil(words.rows / perUnit), 0);
    if (numTokens <= MOST_VECTOR_TOKENS) {
      const { kernel, perGroup } = vectorOf(layout, numTokens, false);
      add(kernel, params, [unitsOf(perGroup)], chunk);
      return;
    }
    const perThread = numTokens <= 16 ? 1 : numTokens <= 32 ? 2 : 4;
    const kernel = cached(`tile ${layout.name} ${perThread}`, () => tileKernel(layout, perThread));
    add(kernel, params, [unitsOf(TILE_ROWS), Math.ceil(numTokens / (16 * perThread))], chunk);
  }

  const markOutputs = (outputs: readonly MatmulOutput[], numTokens: number): void => {
    for (const { out, weight } of outputs) wrote(out, numTokens * weight.numRows * 4);
  };

  function matmul({ x, norm = null, numTokens, outputs }: MatmulOp): void {
    if (numTokens === 0) return;
    const { numCols, blocks } = outputs[0]!.weight as GpuMatrix;
    const pieces = outputs.flatMap(piecesOf);
    prepare(x, norm, numTokens, numCols, pieces);
    multiply(pieces, numTokens, blocks);
    markOutputs(outputs, numTokens);
  }

  return {
    reserve: ({ layout: { layout, rounding } }) => void regionOf(layout, rounding),
    matmul,
    gatedMatmul({ x, norm = null, numTokens, gate, up, out, scratch, activation }) {
      if (numTokens === 0) return;
      const { numCols, blocks, numRows } = gate.weight as GpuMatrix;
      const outputs = [
        { ...gate, out, accumulate: false },
        { ...up, out: scratch, accumulate: false },
      ];
      const pieces = outputs.flatMap(piecesOf);
      const [first, second] = pieces as [Piece, Piece];
      const isFused =
        numTokens <= MOST_VECTOR_TOKENS / 2 &&
        pieces.length === 2 &&
        first.layout === second.layout &&
        first.rounding === second.rounding &&
        first.chunk === second.chunk;
      prepare(x, norm, numTokens, numCols, pieces);
      if (isFused) {
        const { kernel, perGroup } = vectorOf(first.layout, numTokens, true);
        const params = paramsOf(pieces, numTokens, blocks, MAP_KINDS[activation]);
        add(kernel, params, [Math.ceil(numRows / perGroup)], first.chunk);
        wrote(out, numTokens * numRows * 4);
        return;
      }
      multiply(pieces, numTokens, blocks);
      markOutputs(outputs, numTokens);
      recorder.map(MAP_KINDS[activation], out, scratch, out, numTokens * numRows);
    },
    gatherRows({ table, ids, out, numRows, scale }) {
      const { layout, parts, blocks, numCols } = table as GpuMatrix;
      const kernel = cached(`gather ${layout.layout.name}`, () => gatherKernel(layout.layout));
      for (const { firstRow, numRows: allRows, chunk, vector } of parts) {
        const params = { weight: vector, allRows, firstRow, blocks, numCols, ids: ids / 4, out: out / 4, numRows };
        add(kernel, { ...params, scaleF: scale }, [recorder.groupsFor(numRows * blocks)], chunk);
      }
      wrote(out, numRows * numCols * 4);
    },
  };
}
