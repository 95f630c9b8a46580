import { RuvLLMError } from '../core/errors.ts';
import type { TensorTypeName } from '../core/tensor-type.ts';
import { quantFormats, rowBytes } from '../quant/index.ts';
import { alignArena, type Arena, type KernelPack, type KvRegion, type Offset, type WeightMatrix } from './contract.ts';
import { checkedMatrixBytes } from './matrix-bytes.ts';

/** Operation numbers, shared with the kernels of every recorded pack. */
export const OPCODES = {
  round: 0,
  matmul: 1,
  gather: 2,
  rmsNorm: 3,
  rope: 4,
  writeKv: 5,
  attention: 6,
  map: 7,
  copyRows: 8,
  repack: 9,
} as const;

const MAP_KINDS = { add: 0, silu: 1, gelu: 2, softcap: 3, scale: 4 } as const;

/** Largest head and head group the attention scratch is sized for. */
export const MAX_HEAD_DIM = 512;
export const MAX_HEAD_GROUP = 64;

/** A word of a record: an integer or offset, or a number the kernels read as a float. */
export type Word = number | { f32: number };

/** How a pack keeps and computes a tensor type. */
export interface RecordedLayout {
  readonly id: number;
  /** Columns per block of the layout; a matrix's columns are a multiple of it. */
  readonly blockCols: number;
  /** Bytes of one block of a group of rows. */
  readonly blockBytes: number;
  /** Which rounding of activations the layout meets; null: none, plain f32. */
  readonly activation: number | null;
  /** Tokens that go through the kernels side by side when there are several. */
  readonly tileTokens: number;
  /** Bytes of rounded activations per column and token. */
  readonly activationBytesPerCol: number;
}

/** What differs between packs that record. */
export interface RecordedPackParts {
  readonly name: string;
  readonly numThreads: number;
  readonly arena: Arena;
  readonly layouts: Readonly<Record<TensorTypeName, RecordedLayout>>;
  /** Rows kept together. */
  readonly groupRows: number;
  readonly maxCols: number;
  readonly maxTokens: number;
  /** Raw rows on their way from the file into a packed layout. */
  readonly staging: { readonly at: Offset; readonly sizeBytes: number };
  /** int32: kernels set it when a scale in the file is no number that their layout can hold. */
  readonly refusedAt: Offset;
  /** Where activations go, by rounding. */
  readonly roundedAt: readonly Offset[];
  /** Rounded activations of one pass over a chunk of rows: what stays in a near cache beside the weights. */
  readonly passBytes: number;
  record(opcode: number, words: readonly Word[], barrierAfter?: boolean): void;
  /** Runs what was recorded, now. */
  run(): void;
  dispose(): Promise<void>;
}

interface PackedMatrix extends WeightMatrix {
  readonly layout: RecordedLayout;
}

/** Bytes to reserve for the activations of each rounding: whole tiles of the layouts that meet it. */
export function roundedBytes(
  layouts: Readonly<Record<string, RecordedLayout>>,
  { maxCols, maxTokens }: { maxCols: number; maxTokens: number },
): number[] {
  const bytes: number[] = [];
  for (const { activation, activationBytesPerCol, tileTokens } of Object.values(layouts)) {
    if (activation === null) continue;
    const size = Math.ceil(maxTokens / tileTokens) * tileTokens * maxCols * activationBytesPerCol;
    bytes[activation] = Math.max(bytes[activation] ?? 0, alignArena(size));
  }
  return bytes;
}

/** Bytes of a matrix in groups of rows; the last group is padded. */
export function packedBytes(layout: RecordedLayout, groupRows: number, numRows: number, numCols: number): number {
  return Math.ceil(numRows / groupRows) * (numCols / layout.blockCols) * layout.blockBytes;
}

/** A kernel pack whose operations become records that native code or WebAssembly runs on all threads. */
export function createRecordedPack(parts: RecordedPackParts): KernelPack {
  const { arena, layouts, groupRows, numThreads, roundedAt, record } = parts;

  const kvWords = (kv: KvRegion, layer: number): number[] => [
    kv.base,
    kv.pageBytes,
    layer * kv.layerBytes,
    kv.numKvHeads,
    kv.headDim,
  ];
  const isF32 = (kv: KvRegion): number => (kv.precision === 'f32' ? 1 : 0);
  const map = (kind: number, x: Offset, y: Offset, out: Offset, count: number, factor = 0): void =>
    record(OPCODES.map, [kind, x, y, out, count, { f32: factor }]);

  return {
    name: parts.name,
    numThreads,
    arena,

    loadMatrix(source) {
      const { name, type, numRows, numCols } = source;
      checkedMatrixBytes(source);
      const layout = layouts[type];
      const sourceRowBytes = rowBytes(type, numCols);
      const rowsPerStrip = Math.floor(parts.staging.sizeBytes / sourceRowBytes / groupRows) * groupRows;
      if (rowsPerStrip === 0 || numCols > parts.maxCols) {
        throw new RuvLLMError(
          'unsupported',
          `${name} has ${numCols} columns, this pack was made for ${parts.maxCols} and ${groupRows} rows in ${parts.staging.sizeBytes} bytes`,
        );
      }
      const sizeBytes = packedBytes(layout, groupRows, numRows, numCols);
      const offset = arena.allocate(sizeBytes, name);
      const groupBytes = packedBytes(layout, groupRows, groupRows, numCols);
      for (let row = 0; row < numRows; row += rowsPerStrip) {
        const rows = Math.min(rowsPerStrip, numRows - row);
        source.readInto(arena.u8(parts.staging.at, rows * sourceRowBytes), row * sourceRowBytes);
        const target = offset + (row / groupRows) * groupBytes;
        const typeId = quantFormats[type].ggufId;
        const words = [parts.staging.at, typeId, rows, numCols, sourceRowBytes, target, layout.id, parts.refusedAt];
        record(OPCODES.repack, words);
        parts.run();
        if (arena.i32(parts.refusedAt, 1)[0] !== 0) {
          arena.i32(parts.refusedAt, 1)[0] = 0;
          throw new RuvLLMError(
            'invalid_model_file',
            `${name} (${type}) has a scale that is infinite or not a number in rows ${row} to ${row + rows - 1}`,
            { data: { name, type, firstRow: row, numRows: rows } },
          );
        }
      }
      const matrix: PackedMatrix = { name, type, numRows, numCols, offset, sizeBytes, layout };
      return matrix;
    },

    gatherRows({ table, ids, out, numRows, scale }) {
      const { layout } = table as PackedMatrix;
      record(OPCODES.gather, [table.offset, layout.id, table.numCols, ids, out, numRows, { f32: scale }]);
    },

    matmul({ x, numTokens, outputs }) {
      if (numTokens === 0) return;
      if (numTokens > parts.maxTokens) {
        // The rounded activations would run over the caller's memory.
        throw new RuvLLMError('internal', `matmul of ${numTokens} tokens, this pack was made for ${parts.maxTokens}`);
      }
      const { numCols } = outputs[0]!.weight;
      const matrixLayouts = outputs.map(({ weight }) => (weight as PackedMatrix).layout);
      const tileOf = (layout: RecordedLayout): number => (numTokens > 1 ? layout.tileTokens : 1);
      const roundings = new Map(matrixLayouts.map((layout) => [layout.activation, tileOf(layout)]));
      roundings.delete(null);
      let numLeft = roundings.size;
      for (const [kind, tile] of roundings) {
        record(OPCODES.round, [x, roundedAt[kind!]!, kind!, numCols, numTokens, tile], --numLeft === 0);
      }
      outputs.forEach(({ weight, out, bias, accumulate }, i) => {
        const layout = matrixLayouts[i]!;
        const kind = layout.activation;
        const groups = Math.ceil(weight.numRows / groupRows);
        const groupsPerChunk = Math.max(1, Math.min(16, Math.floor(groups / (numThreads * 4))));
        const tileBytes = (layout.activationBytesPerCol || 4) * numCols * layout.tileTokens;
        const tilesPerPass = Math.max(1, Math.floor(parts.passBytes / tileBytes));
        const words = [weight.offset, layout.id, weight.numRows, numCols, kind === null ? x : roundedAt[kind]!];
        words.push(kind ?? 0, numTokens, tileOf(layout), out, bias ?? 0, accumulate ? 1 : 0);
        record(OPCODES.matmul, [...words, groupsPerChunk, tilesPerPass], i === outputs.length - 1);
      });
    },

    rmsNorm: ({ x, weight, out, numRows, dim, epsilon }) =>
      record(OPCODES.rmsNorm, [x, weight, out, numRows, dim, { f32: epsilon }]),

    rope: ({ x, cosSin, numTokens, numHeads, headDim, rotaryDim, pairing }) =>
      record(OPCODES.rope, [x, cosSin, numTokens, numHeads, headDim, rotaryDim, pairing === 'halves' ? 1 : 0]),

    writeKv: ({ kv, layer, k, v, slots, numTokens }) =>
      record(OPCODES.writeKv, [...kvWords(kv, layer), k, v, slots, numTokens, isF32(kv)]),

    attention({ kv, layer, q, out, numHeads, sequences, numSequences, pageTables, scale, window, softcap }) {
      const group = numHeads / kv.numKvHeads;
      if (kv.headDim > MAX_HEAD_DIM || kv.headDim % 4 !== 0 || group > MAX_HEAD_GROUP || !Number.isInteger(group)) {
        throw new RuvLLMError(
          'unsupported',
          `attention with ${numHeads} heads over ${kv.numKvHeads} KV heads of ${kv.headDim} values: at most ` +
            `${MAX_HEAD_GROUP} heads a KV head and ${MAX_HEAD_DIM} values, in fours`,
        );
      }
      const words = [q, out, numHeads, sequences, numSequences, pageTables, { f32: scale }, window, { f32: softcap }];
      record(OPCODES.attention, [...kvWords(kv, layer), ...words, isF32(kv)]);
    },

    gatedActivation: ({ gate, up, out, count, activation }) => map(MAP_KINDS[activation], gate, up, out, count),
    add: ({ x, y, out, count }) => map(MAP_KINDS.add, x, y, out, count),
    softcap: ({ x, count, cap }) => map(MAP_KINDS.softcap, x, x, x, count, cap),
    scale: ({ x, count, factor }) => map(MAP_KINDS.scale, x, x, x, count, factor),
    copyRows: ({ x, rows, out, numRows, dim }) => record(OPCODES.copyRows, [x, rows, out, numRows, dim]),

    async sync() {
      parts.run();
    },
    dispose: () => parts.dispose(),
  };
}
