import { RuvLLMError } from '../../core/errors.ts';
import type {
  AttentionOp,
  KernelPack,
  KvRegion,
  PackPagesOp,
  RotateAndStoreOp,
  RopeOp,
  WriteKvOp,
} from '../contract.ts';
import { checkRegions, kvHeadBytes } from '../kv-region.ts';
import { checkWindow } from '../op-limits.ts';
import type { HostArena } from './host-arena.ts';
import type { OpenGpu } from './open-gpu.ts';
import type { Recorder } from './recorder.ts';
import {
  attentionChunks,
  attentionMerge,
  attentionRows,
  type AttentionShape,
  CHUNK_TOKENS,
  partVectors,
} from './wgsl/attention.ts';
import { attentionTiles, MAX_TILE_HEAD_DIM, tileBytes, type TileShape } from './wgsl/attention-tiles.ts';
import type { KernelSource } from './wgsl/common.ts';
import { PACK_PAGES, ROPE, ROTATE_AND_STORE, ROTATE_AND_STORE_PAIRS, WRITE_KV } from './wgsl/heads.ts';

/** Fewer rows and heads than this leave most of a device idle unless chunks of the context are visited side by side. */
export const MIN_WORKGROUPS = 1024;
const MAX_HEAD_DIM = 576;

type AttentionOps = Pick<KernelPack, 'rope' | 'writeKv' | 'rotateAndStore' | 'packPages' | 'attention'>;

const sources = new Map<string, Record<'rows' | 'chunks' | 'merge', KernelSource>>();
function sourcesOf(shape: AttentionShape): Record<'rows' | 'chunks' | 'merge', KernelSource> {
  const key = `${shape.headDim} ${shape.precision} ${shape.packed} ${shape.numTogether} ${shape.hasSubgroups}`;
  let entry = sources.get(key);
  if (entry === undefined) {
    entry = { rows: attentionRows(shape), chunks: attentionChunks(shape), merge: attentionMerge(shape) };
    sources.set(key, entry);
  }
  return entry;
}

const tiles = new Map<string, KernelSource>();
function tilesOf(shape: TileShape): KernelSource {
  const key = `${shape.headDim} ${shape.precision} ${shape.packed} ${shape.numTogether} ${shape.numQueries} ${shape.hasSubgroups}`;
  let kernel = tiles.get(key);
  if (kernel === undefined) tiles.set(key, (kernel = attentionTiles(shape)));
  return kernel;
}

export function createAttentionOps(
  { add, wrote, groupsFor, borrowScratch }: Recorder,
  arena: HostArena,
  { hasSubgroups, workgroupBytes }: Pick<OpenGpu, 'hasSubgroups' | 'workgroupBytes'>,
  minWorkgroups: number,
): AttentionOps {
  /** Rows times heads that share a workgroup; undefined: too few to share one. */
  function queriesOfTile(
    { headDim, numTogether }: AttentionShape,
    numRows: number,
    perWorkgroup: number,
  ): TileShape['numQueries'] | undefined {
    if (headDim > MAX_TILE_HEAD_DIM || headDim % 4 !== 0) return undefined;
    return ([32, 16] as const).find(
      (numQueries) =>
        numRows * numTogether >= numQueries &&
        2 * perWorkgroup >= numQueries &&
        tileBytes({ headDim, numQueries, hasSubgroups }) <= workgroupBytes,
    );
  }
  const markRegion = ({ base, pageBytes, numPages }: KvRegion): void => wrote(base, pageBytes * numPages);
  const turnParams = ({ cosSin, numTokens, headDim, rotaryDim, pairing }: Omit<RopeOp, 'x' | 'numHeads'>) => ({
    cosSin: cosSin / 4,
    numTokens,
    headDim,
    rotaryDim,
    isHalves: pairing === 'halves' ? 1 : 0,
  });
  const storeParams = ({ kv, layer, k, v, slots, numTokens }: WriteKvOp) => ({
    k: k / 4,
    v: v / 4,
    slots: slots / 4,
    numTokens,
    numKvHeads: kv.numKvHeads,
    headDim: kv.headDim,
    base: (kv.base + layer * kv.layerBytes) / 4,
    pageWords: kv.pageBytes / 4,
    isFloat: kv.precision === 'f32' ? 1 : 0,
  });

  return {
    rope(op: RopeOp) {
      const { x, numTokens, numHeads, headDim, rotaryDim } = op;
      const params = { ...turnParams(op), x: x / 4, numHeads };
      add(ROPE, params, [groupsFor((numTokens * numHeads * rotaryDim) / 2)]);
      wrote(x, numTokens * numHeads * headDim * 4);
    },
    writeKv(op: WriteKvOp) {
      checkRegions('writeKv', op.kv, null);
      add(WRITE_KV, storeParams(op), [Math.min(65535, op.numTokens * 2 * op.kv.numKvHeads)]);
      markRegion(op.kv);
    },
    rotateAndStore(op: RotateAndStoreOp) {
      const { kv, q, k, qNorm, kNorm, numTokens, numHeads, headDim } = op;
      checkRegions('writeKv', kv, null);
      const params = {
        ...turnParams(op),
        ...storeParams(op),
        q: q / 4,
        numHeads,
        qNorm: (qNorm ?? 0) / 4,
        kNorm: (kNorm ?? 0) / 4,
        hasQNorm: qNorm === null ? 0 : 1,
        hasKNorm: kNorm === null ? 0 : 1,
        epsilonF: op.epsilon,
      };
      const heads = numTokens * (numHeads + 2 * kv.numKvHeads);
      if (qNorm === null && kNorm === null) {
        add(ROTATE_AND_STORE_PAIRS, params, [groupsFor(heads * Math.ceil(headDim / 2))]);
      } else add(ROTATE_AND_STORE, params, [Math.min(65535, heads)]);
      wrote(q, numTokens * numHeads * headDim * 4);
      wrote(k, numTokens * kv.numKvHeads * headDim * 4);
      markRegion(kv);
    },
    packPages(op: PackPagesOp) {
      const { from, to, firstLayer, numLayers, pages, numPages } = op;
      checkRegions('packPages', from, to);
      const params = {
        pages: pages / 4,
        numPages,
        numLayers,
        numKvHeads: to.numKvHeads,
        headDim: to.headDim,
        isFloat: from.precision === 'f32' ? 1 : 0,
        isQ4: to.precision === 'q4' ? 1 : 0,
        fromBase: (from.base + firstLayer * from.layerBytes) / 4,
        fromPage: from.pageBytes / 4,
        fromLayer: from.layerBytes / 4,
        toBase: (to.base + firstLayer * to.layerBytes) / 4,
        toPage: to.pageBytes / 4,
        toLayer: to.layerBytes / 4,
        headBytes: kvHeadBytes(to.headDim, to.precision),
      };
      add(PACK_PAGES, params, [groupsFor(numPages * numLayers * to.numKvHeads * (to.headDim + 16))]);
      markRegion(to);
    },
    attention(op: AttentionOp) {
      const { kv, packed = null, layer, q, out, numHeads, numSequences } = op;
      checkRegions('attention', kv, packed);
      checkWindow(op);
      if (kv.headDim > MAX_HEAD_DIM || !Number.isInteger(numHeads / kv.numKvHeads)) {
        throw new RuvLLMError(
          'unsupported',
          `attention with ${numHeads} heads over ${kv.numKvHeads} KV heads of ${kv.headDim} values: at most ${MAX_HEAD_DIM} values are supported`,
        );
      }
      const table = new Int32Array(
        arena.bytesOf({ offset: op.sequences, sizeBytes: numSequences * 16 }).slice().buffer,
      );
      let [endOfRows, mostContext, mostRows] = [0, 0, 0];
      for (let s = 0; s < numSequences; s++) {
        mostRows = Math.max(mostRows, table[4 * s + 1]!);
        endOfRows = Math.max(endOfRows, table[4 * s]! + table[4 * s + 1]!);
        mostContext = Math.max(mostContext, table[4 * s + 2]!);
      }
      const numParts = Math.ceil(mostContext / CHUNK_TOKENS);
      const isSplit = numParts > 1 && endOfRows * numHeads < minWorkgroups;
      const perKvHead = numHeads / kv.numKvHeads;
      // Heads share what they read, unless that leaves too few workgroups; of many rows some share it too.
      const perWorkgroup = isSplit ? 1 : Math.floor((endOfRows * numHeads) / minWorkgroups);
      const shape: AttentionShape = {
        headDim: kv.headDim,
        precision: kv.precision,
        packed: packed?.precision ?? null,
        numTogether: ([4, 2] as const).find((count) => count <= perWorkgroup && perKvHead % count === 0) ?? 1,
        hasSubgroups,
      };
      const numQueries = queriesOfTile(shape, mostRows, perWorkgroup);
      const rowsPerTile = numQueries === undefined ? 0 : numQueries / shape.numTogether;
      // Sequences with few rows, such as those that decode beside a prompt, would leave most of a tile empty.
      const tileRows = Math.ceil(rowsPerTile / 2);
      const { rows, chunks, merge } = sourcesOf(shape);
      const params = {
        q: q / 4,
        out: out / 4,
        numRows: endOfRows,
        numHeads,
        numKvHeads: kv.numKvHeads,
        sequences: op.sequences / 4,
        numSequences,
        tables: op.pageTables / 4,
        base: (kv.base + layer * kv.layerBytes) / 4,
        pageWords: kv.pageBytes / 4,
        packedBase: packed === null ? 0 : (packed.base + layer * packed.layerBytes) / 4,
        packedWords: (packed?.pageBytes ?? 0) / 4,
        window: op.window,
        seesAll: op.seesAll === true ? 1 : 0,
        sinks: (op.sinks ?? 0) / 4,
        hasSinks: op.sinks == null ? 0 : 1,
        parts: isSplit ? borrowScratch(endOfRows * numHeads * numParts * partVectors(kv.headDim)) : 0,
        numParts,
        tileRows,
        scaleF: op.scale,
        softcapF: op.softcap,
      };
      if (isSplit) {
        add(chunks, params, [endOfRows, numHeads, numParts]);
        add(merge, params, [endOfRows, numHeads]);
      } else {
        let [numTiles, areAllTiled] = [0, numQueries !== undefined];
        for (let s = 0; s < numSequences; s++) {
          const numRows = table[4 * s + 1]!;
          if (numQueries !== undefined && numRows >= tileRows) numTiles += Math.ceil(numRows / rowsPerTile);
          else areAllTiled &&= numRows === 0;
        }
        const numHeadGroups = numHeads / shape.numTogether;
        if (numQueries !== undefined) add(tilesOf({ ...shape, numQueries }), params, [numTiles, numHeadGroups]);
        if (!areAllTiled) add(rows, params, [endOfRows, numHeadGroups]);
      }
      wrote(out, endOfRows * numHeads * kv.headDim * 4);
    },
  };
}
