import { RuvLLMError } from '../../core/errors.ts';
import type { ActivationRoundingName } from '../activation-rounding.ts';
import type { GatedMatmulOp, GatherRowsOp, InputNorm, MatmulOp, MatmulOutput, Offset } from '../contract.ts';
import type { Recorder } from './recorder.ts';
import type { GpuMatrix } from './weight-store.ts';
import type { KernelSource } from './wgsl/common.ts';
import type { WeightLayout } from './wgsl/layouts.ts';
import { fitsOwnInput, gatherKernel, vectorKernel, vectorRows, type VectorShape } from './wgsl/matmul.ts';
import { ACCUMULATES, HAS_BIAS, MAX_OUTPUTS } from './wgsl/product-parts.ts';
import { GATED_TILE_ROWS, TILE_ROWS, TILE_TOKENS, tileKernel } from './wgsl/product-tiles.ts';
import { MAX_BLOCKS, PREPARED_VECTORS, prepareKernel, prepareParts } from './wgsl/prepare.ts';
import { MAP_KINDS } from './wgsl/elementwise.ts';

/** Most tokens of the kernels for few; more take tiles, which leave much of a large device idle until there are enough. */
export const MOST_VECTOR_TOKENS = 64;
/** Most tokens that share a workgroup of those kernels. */
const MOST_TOGETHER = 8;
/** Rows that a group of lanes computes at once: of a matrix with many rows more, where every workgroup rounds the input. */
const ROWS_PER_GROUP = 2;
const MANY_PER_GROUP = 4;
const MANY_ROWS = 4096;

/** Rows of one output in one buffer. */
interface Piece {
  readonly layout: WeightLayout;
  readonly rounding: ActivationRoundingName;
  readonly chunk: number;
  readonly words: { weight: number; rows: number; allRows: number; out: number; bias: number; flags: number };
}

/** Rows that products read, in scratch if `own` is null. */
interface PreparedInput {
  readonly numTokens: number;
  readonly blocks: number;
  readonly own: { readonly rounding: 'q8_0' | 'q8_k'; readonly params: readonly number[] } | null;
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
  {
    maxTokens,
    maxCols,
    hasSubgroups,
    mostVectorTokens,
  }: { maxTokens: number; maxCols: number; hasSubgroups: boolean; mostVectorTokens: number },
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

  /** In the order of `NORM_PARAMS`. */
  const normParams = (x: Offset, norm: InputNorm | null, dim: number): number[] =>
    norm === null ? [x / 4, 0, 0, dim, 0] : [x / 4, norm.weight / 4, 1, dim, norm.epsilon];

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
      const form = formOf(layout) === 'integer' && numTokens > mostVectorTokens ? 'blocks' : formOf(layout);
      const key = `${rounding} ${form}`;
      if (seen.has(key)) continue;
      const kernel = cached(`prepare ${key} ${hasSubgroups}`, () => prepareKernel(rounding, form, hasSubgroups));
      const params = [...normParams(x, norm, dim), numTokens, blocks, regionOf(layout, rounding)];
      add(kernel, params, [Math.min(numTokens, 65535), prepareParts(rounding, blocks)]);
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
  function multiply(pieces: readonly Piece[], input: PreparedInput): void {
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
      dispatch(pieces.slice(first, end), input);
      first = end;
    }
  }

  /** In the order of `PRODUCT_PARAMS`, then of `NORM_PARAMS` if the workgroups round the input. */
  function paramsOf(pieces: readonly Piece[], { numTokens, blocks, own }: PreparedInput, gate: number): number[] {
    const { layout, rounding } = pieces[0]!;
    const params = [numTokens, blocks, regionOf(layout, rounding), gate];
    for (let i = 0; i < MAX_OUTPUTS; i++) {
      const words = pieces[i]?.words;
      if (words === undefined) params.push(0, 0, 0, 0, 0, 0);
      else params.push(words.weight, words.rows, words.allRows, words.out, words.bias, words.flags);
    }
    return own === null ? params : [...params, ...own.params];
  }

  /** The kernel for few tokens, and the rows and tokens of its workgroups. */
  function vectorOf(pieces: readonly Piece[], { numTokens, blocks, own }: PreparedInput, isGated: boolean) {
    const { layout } = pieces[0]!;
    const allRows = pieces.reduce((sum, { words }) => sum + words.rows, 0);
    const numRows = own !== null && allRows > MANY_ROWS ? MANY_PER_GROUP : ROWS_PER_GROUP;
    const together = numTokens === 1 ? 1 : numTokens === 2 ? 2 : numTokens <= 4 ? 4 : MOST_TOGETHER;
    const ownInput = own === null ? null : { rounding: own.rounding, blocks };
    const shape: VectorShape = { numTokens: together, numRows, isGated, hasSubgroups, ownInput };
    const key = `vector ${layout.name} ${together} ${numRows} ${isGated} ${hasSubgroups} ${own === null ? '' : `${own.rounding} ${blocks}`}`;
    return { kernel: cached(key, () => vectorKernel(layout, shape)), perGroup: vectorRows(shape), together };
  }

  const tileOf = (layout: WeightLayout, isGated: boolean): KernelSource =>
    cached(`tile ${layout.name} ${isGated}`, () => tileKernel(layout, isGated));

  function dispatch(pieces: readonly Piece[], input: PreparedInput): void {
    const { layout, chunk } = pieces[0]!;
    const { numTokens } = input;
    const params = paramsOf(pieces, input, 0);
    const unitsOf = (perUnit: number): number =>
      pieces.reduce((sum, { words }) => sum + Math.ceil(words.rows / perUnit), 0);
    if (numTokens <= mostVectorTokens) {
      const { kernel, perGroup, together } = vectorOf(pieces, input, false);
      add(kernel, params, [unitsOf(perGroup), Math.ceil(numTokens / together)], chunk);
      return;
    }
    add(tileOf(layout, false), params, [unitsOf(TILE_ROWS), Math.ceil(numTokens / TILE_TOKENS)], chunk);
  }

  const markOutputs = (outputs: readonly MatmulOutput[], numTokens: number): void => {
    for (const { out, weight } of outputs) wrote(out, numTokens * weight.numRows * 4);
  };

  /** Rounds the input, or leaves that to the workgroups of the products. */
  function readInput(
    { x, norm = null, numTokens }: Pick<MatmulOp, 'x' | 'norm' | 'numTokens'>,
    outputs: readonly MatmulOutput[],
    pieces: readonly Piece[],
  ): PreparedInput {
    const { numCols, blocks } = outputs[0]!.weight as GpuMatrix;
    const { rounding, layout } = pieces[0]!;
    const isOwn =
      numTokens === 1 &&
      layout.kind === 'integer' &&
      (rounding === 'q8_0' || rounding === 'q8_k') &&
      fitsOwnInput(rounding, blocks, hasSubgroups) &&
      pieces.every((piece) => piece.rounding === rounding && piece.layout.kind === 'integer') &&
      // A workgroup may write its results while another still reads the input.
      outputs.every(({ out, weight }) => out >= x + numCols * 4 || out + weight.numRows * 4 <= x);
    if (isOwn) return { numTokens, blocks, own: { rounding, params: normParams(x, norm, numCols) } };
    prepare(x, norm, numTokens, numCols, pieces);
    return { numTokens, blocks, own: null };
  }

  return {
    reserve: ({ layout: { layout, rounding } }) => void regionOf(layout, rounding),
    matmul(op) {
      const { numTokens, outputs } = op;
      if (numTokens === 0) return;
      const pieces = outputs.flatMap(piecesOf);
      multiply(pieces, readInput(op, outputs, pieces));
      markOutputs(outputs, numTokens);
    },
    gatedMatmul(op) {
      const { numTokens, gate, up, out, scratch, activation } = op;
      if (numTokens === 0) return;
      const { numRows } = gate.weight as GpuMatrix;
      const outputs = [
        { ...gate, out, accumulate: false },
        { ...up, out: scratch, accumulate: false },
      ];
      const pieces = outputs.flatMap(piecesOf);
      const [first, second] = pieces as [Piece, Piece];
      const isFused =
        pieces.length === 2 &&
        first.layout === second.layout &&
        first.rounding === second.rounding &&
        first.chunk === second.chunk;
      const input = readInput(op, outputs, pieces);
      if (isFused) {
        const { kernel, perGroup, together } =
          numTokens <= mostVectorTokens
            ? vectorOf(pieces, input, true)
            : { kernel: tileOf(first.layout, true), perGroup: GATED_TILE_ROWS, together: TILE_TOKENS };
        const params = paramsOf(pieces, input, MAP_KINDS[activation]);
        add(kernel, params, [Math.ceil(numRows / perGroup), Math.ceil(numTokens / together)], first.chunk);
        wrote(out, numTokens * numRows * 4);
        return;
      }
      multiply(pieces, input);
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
