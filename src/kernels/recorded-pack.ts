import { RuvLLMError } from '../core/errors.ts';
import { quantFormats, rowBytes } from '../quant/index.ts';
import { composeOps } from './composed-ops.ts';
import {
  alignArena,
  type GatedActivationOp,
  type InputNorm,
  type KernelPack,
  type KvRegion,
  type MatrixSource,
  type MatmulOp,
  type MatmulOutput,
  type Offset,
  type RmsNormOp,
  type RopeOp,
  type WeightMatrix,
  type WriteKvOp,
} from './contract.ts';
import { checkRegions } from './kv-region.ts';
import { decodeRows, LEVELS_TYPE, levelRowBytes } from './level-rows.ts';
import { checkedMatrixBytes } from './matrix-bytes.ts';
import { checkWindow } from './op-limits.ts';
import { OPCODES, PAGE_KINDS } from './opcodes.ts';
import { createRecordedExperts } from './recorded-experts.ts';
import { createRecordedExtras } from './recorded-extras.ts';
import { createRecordedStates } from './recorded-states.ts';
import { createRecordedStreams } from './recorded-streams.ts';
import type { Word, Follow, RecordedLayout, RecordedPackParts } from './recorded-parts.ts';

/** Minimum values per chunk of an elementwise operation. */
const MAP_CHUNK = 1024;
const GATE_KINDS = { silu: 1, gelu: 2, 'clamped-swiglu': 3 } as const;
const MAP_KINDS = {
  add: 0,
  silu: 1,
  gelu: 2,
  softcap: 3,
  scale: 4,
  erfGelu: 5,
  tanhGelu: 6,
  multiply: 7,
  'clamped-swiglu': 8,
  sigmoidGate: 9,
} as const;

/** Largest head and head group for which attention has scratch. */
export const MAX_HEAD_DIM = 576;
export const MAX_HEAD_GROUP = 64;

interface PackedMatrix extends WeightMatrix {
  readonly layout: RecordedLayout;
}

/** Bytes to reserve for each rounding's activations: whole tiles of its layouts. */
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

/** Bytes of a matrix in row groups; the last group is padded. */
export function packedBytes(layout: RecordedLayout, groupRows: number, numRows: number, numCols: number): number {
  return Math.ceil(numRows / groupRows) * (numCols / layout.blockCols) * layout.blockBytes;
}

/** A kernel pack whose operations become records, which native code or WebAssembly runs on all threads. */
export function createRecordedPack(parts: RecordedPackParts): KernelPack {
  const { arena, layouts, groupRows, numThreads, roundedAt, record } = parts;

  const kvWords = (kv: KvRegion, layer: number): number[] => [
    kv.base,
    kv.pageBytes,
    layer * kv.layerBytes,
    kv.numKvHeads,
    kv.headDim,
  ];
  const map = (kind: number, x: Offset, y: Offset, out: Offset, count: number, factor = 0): void =>
    record(OPCODES.map, [kind, x, y, out, count, { f32: factor }], 'barrier', Math.ceil(count / MAP_CHUNK));
  const rmsNorm = ({ x, weight, out, numRows, dim, epsilon }: RmsNormOp, follow: Follow, numTokens: number): void =>
    record(OPCODES.rmsNorm, [x, weight, out, numRows, dim, { f32: epsilon }], follow, numTokens);
  const rope = (op: RopeOp, follow: Follow): void => {
    const { x, cosSin, numTokens, numHeads, headDim, rotaryDim, pairing } = op;
    const words = [x, cosSin, numTokens, numHeads, headDim, rotaryDim, pairing === 'halves' ? 1 : 0];
    record(OPCODES.rope, words, follow, numTokens);
  };
  const writeKv = ({ kv, layer, k, v, slots, numTokens }: WriteKvOp): void => {
    checkRegions('writeKv', kv, null);
    const words = [...kvWords(kv, layer), k, v, slots, numTokens, PAGE_KINDS[kv.precision]];
    record(OPCODES.writeKv, words, 'barrier', numTokens);
  };

  /** Normalizes and rounds rows as the weights require; returns the rows' place for each weight. */
  function prepareRows(
    x: Offset,
    norm: InputNorm | null,
    numTokens: number,
    weights: readonly WeightMatrix[],
  ): Offset[] {
    const { numCols } = weights[0]!;
    if (numTokens > parts.maxTokens) {
      // The rounded activations would overwrite the caller's memory.
      throw new RuvLLMError('internal', `matmul of ${numTokens} tokens, this pack was created for ${parts.maxTokens}`);
    }
    const layoutsOf = weights.map((weight) => (weight as PackedMatrix).layout);
    const roundings = new Map(layoutsOf.map((layout) => [layout.activation, tileOf(layout, numTokens)]));
    roundings.delete(null);
    let numLeft = roundings.size;
    const rows = norm?.scratch ?? x;
    if (norm !== null) {
      const op = { x, weight: norm.weight, out: rows, numRows: numTokens, dim: numCols, epsilon: norm.epsilon };
      rmsNorm(op, numLeft > 0 ? 'chain' : 'barrier', numTokens);
    }
    for (const [kind, tile] of roundings) {
      const words = [rows, roundedAt[kind!]!, kind!, numCols, numTokens, tile];
      record(OPCODES.round, words, --numLeft > 0 ? 'chain' : 'barrier', numTokens);
    }
    return layoutsOf.map(({ activation }) => (activation === null ? rows : roundedAt[activation]!));
  }
  const tileOf = (layout: RecordedLayout, numTokens: number): number => (numTokens > 1 ? layout.tileTokens : 1);

  const multiply = (
    { weight, out, bias, accumulate }: MatmulOutput,
    rows: Offset,
    numTokens: number,
    follow: Follow,
    gate: readonly number[] = [],
  ): void => {
    const { layout } = weight as PackedMatrix;
    const { numCols } = weight;
    const groupsPerChunk = parts.groupsPerChunk(Math.ceil(weight.numRows / groupRows), numTokens);
    const tileBytes = (layout.activationBytesPerCol || 4) * numCols * layout.tileTokens;
    const tilesPerPass = Math.max(1, Math.floor(parts.passBytes / tileBytes));
    const words = [weight.offset, layout.id, weight.numRows, numCols, rows, layout.activation ?? 0, numTokens];
    words.push(tileOf(layout, numTokens), out, bias ?? 0, accumulate ? 1 : 0, groupsPerChunk, tilesPerPass);
    record(OPCODES.matmul, [...words, ...gate], follow);
  };
  const matmul = ({ x, norm = null, numTokens, outputs }: MatmulOp): void => {
    if (numTokens === 0) return;
    const rows = prepareRows(x, norm, numTokens, outputs.map(({ weight }) => weight)); // prettier-ignore
    outputs.forEach((output, i) => {
      multiply(output, rows[i]!, numTokens, i === outputs.length - 1 ? 'barrier' : 'nothing');
    });
  };
  const gatedActivation = ({ gate, up, out, count, activation }: GatedActivationOp): void =>
    map(MAP_KINDS[activation], gate, up, out, count);
  const composed = composeOps({
    rmsNorm: (op) => rmsNorm(op, 'barrier', op.numRows),
    rope: (op) => rope(op, 'barrier'),
    writeKv,
    gatedActivation,
    multiply: (op) => matmul({ ...op, norm: null }),
  });

  const placeMatrix = (shape: Omit<MatrixSource, 'readInto'>): PackedMatrix => {
    const { name, type, numRows, numCols } = shape;
    checkedMatrixBytes(shape);
    const layout = layouts[type];
    const sizeBytes = packedBytes(layout, groupRows, numRows, numCols);
    return { name, type, numRows, numCols, offset: arena.allocate(sizeBytes, name), sizeBytes, layout };
  };

  return {
    name: parts.name,
    numThreads,
    arena,
    ...(parts.images === undefined ? {} : { images: { ...parts.images, placeMatrix } }),

    loadMatrix(source) {
      const { name, type, numRows, numCols } = source;
      checkedMatrixBytes(source);
      const layout = layouts[type];
      const { ggufId, decodeLevels } = quantFormats[type];
      const fileRowBytes = rowBytes(type, numCols);
      const sourceRowBytes = decodeLevels === undefined ? fileRowBytes : levelRowBytes(numCols);
      const typeId = decodeLevels === undefined ? ggufId : LEVELS_TYPE;
      const rowsPerStrip = Math.floor(parts.staging.sizeBytes / sourceRowBytes / groupRows) * groupRows;
      if (rowsPerStrip === 0 || numCols > parts.maxCols) {
        throw new RuvLLMError(
          'unsupported',
          `${name} has ${numCols} columns, this pack was created for ${parts.maxCols} and ${groupRows} rows in ${parts.staging.sizeBytes} bytes`,
        );
      }
      const matrix = placeMatrix(source);
      const { offset } = matrix;
      const groupBytes = packedBytes(layout, groupRows, groupRows, numCols);
      for (let row = 0; row < numRows; row += rowsPerStrip) {
        const rows = Math.min(rowsPerStrip, numRows - row);
        const staged = arena.u8(parts.staging.at, rows * sourceRowBytes);
        if (decodeLevels === undefined) source.readInto(staged, row * fileRowBytes);
        else decodeRows(source, row, rows, staged);
        const target = offset + (row / groupRows) * groupBytes;
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
      return matrix;
    },

    gatherRows({ table, ids, out, numRows, scale }) {
      const { layout } = table as PackedMatrix;
      const words = [table.offset, layout.id, table.numCols, ids, out, numRows, { f32: scale }];
      record(OPCODES.gather, words, 'barrier', numRows);
    },

    matmul,

    gatedMatmul(op) {
      const { x, norm = null, numTokens, gate, up, out, activation } = op;
      if (!parts.isFusing) return composed.gatedMatmul(op);
      if (numTokens === 0) return;
      const rows = prepareRows(x, norm, numTokens, [gate.weight, up.weight]);
      const { layout } = up.weight as PackedMatrix;
      const second = [up.weight.offset, layout.id, rows[1]!, layout.activation ?? 0, up.bias ?? 0];
      const gateWords = [GATE_KINDS[activation], ...second];
      multiply({ ...gate, out, accumulate: false }, rows[0]!, numTokens, 'barrier', gateWords);
    },

    rmsNorm: (op) => rmsNorm(op, 'barrier', op.numRows),
    layerNorm: ({ x, weight, bias, out, numRows, dim, epsilon }) =>
      record(OPCODES.layerNorm, [x, weight, bias, out, numRows, dim, { f32: epsilon }], 'barrier', numRows),
    rope: (op) => rope(op, 'barrier'),
    writeKv,

    rotateAndStore(op) {
      composeOps({
        rmsNorm: (norm) => rmsNorm(norm, 'chain', op.numTokens),
        rope: (rotated) => rope(rotated, 'chain'),
        writeKv,
        gatedActivation,
        multiply: (product) => matmul({ ...product, norm: null }),
      }).rotateAndStore(op);
    },

    attention(op) {
      const { kv, packed = null, layer, q, out, numHeads, sequences, numSequences, pageTables } = op;
      checkRegions('attention', kv, packed);
      checkWindow(op);
      const group = numHeads / kv.numKvHeads;
      if (kv.headDim > MAX_HEAD_DIM || kv.headDim % 4 !== 0 || group > MAX_HEAD_GROUP || !Number.isInteger(group)) {
        throw new RuvLLMError(
          'unsupported',
          `attention with ${numHeads} heads over ${kv.numKvHeads} KV heads of ${kv.headDim} values: at most ` +
            `${MAX_HEAD_GROUP} heads per KV head and ${MAX_HEAD_DIM} values, a multiple of 4, are supported`,
        );
      }
      const words: Word[] = [...kvWords(kv, layer), q, out, numHeads, sequences, numSequences, pageTables];
      words.push({ f32: op.scale }, op.window, { f32: op.softcap }, PAGE_KINDS[kv.precision]);
      if (packed === null) words.push(0, 0, 0);
      else words.push(packed.base + layer * packed.layerBytes, packed.pageBytes, PAGE_KINDS[packed.precision]);
      words.push(op.seesAll === true ? 1 : 0, op.sinks ?? 0);
      record(OPCODES.attention, words);
    },

    gatedActivation,
    gelu: ({ x, count, formula }) => map(formula === 'tanh' ? MAP_KINDS.tanhGelu : MAP_KINDS.erfGelu, x, x, x, count),
    add: ({ x, y, out, count }) => map(MAP_KINDS.add, x, y, out, count),
    multiply: ({ x, y, out, count }) => map(MAP_KINDS.multiply, x, y, out, count),
    sigmoidGate: ({ x, y, out, count }) => map(MAP_KINDS.sigmoidGate, x, y, out, count),
    softcap: ({ x, count, cap }) => map(MAP_KINDS.softcap, x, x, x, count, cap),
    scale: ({ x, count, factor }) => map(MAP_KINDS.scale, x, x, x, count, factor),
    copyRows: ({ x, rows, out, numRows, dim }) =>
      record(OPCODES.copyRows, [x, rows, out, numRows, dim], 'barrier', numRows),
    copyBlocks({ x, out, numOuter, numInner, width, from, to }) {
      const words = [x, out, numOuter, numInner, width, from.outer, from.inner, to.outer, to.inner];
      record(OPCODES.copyBlocks, words, 'barrier', numOuter);
    },

    ...createRecordedExtras(record),
    ...createRecordedStates(record),
    ...createRecordedStreams(record),
    ...createRecordedExperts({
      ...parts,
      gateKinds: GATE_KINDS,
      layoutOf: (weight) => (weight as PackedMatrix).layout,
      prepareRows,
      gatedActivation,
    }),

    async sync() {
      parts.run();
    },
    finish: () => parts.run(),
    ...(parts.prepare === undefined ? {} : { prepare: parts.prepare }),
    dispose: () => parts.dispose(),
  };
}
