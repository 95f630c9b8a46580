import { createArena } from '../arena.ts';
import type {
  GatedActivationOp,
  KernelPack,
  KernelPackFactory,
  KernelPackOptions,
  RmsNormOp,
  RopeOp,
  WriteKvOp,
} from '../contract.ts';
import { composeOps } from '../composed-ops.ts';
import { checkedMatrixBytes } from '../matrix-bytes.ts';
import { attention, writeKv } from './attention.ts';
import { distances } from './distances.ts';
import {
  add,
  copyBlocks,
  copyRows,
  gatedActivation,
  gelu,
  layerNorm,
  rmsNorm,
  rope,
  scale,
  softcap,
} from './elementwise.ts';
import { experts } from './experts.ts';
import { pickLinks, searchGraph } from './graph.ts';
import { packPages } from './kv-pages.ts';
import { lowRankDelta } from './low-rank.ts';
import { gatherRows, matmul } from './matmul.ts';
import { causalConv, deltaScan, multiply, selectiveScan, sigmoidGate } from './state-ops.ts';
import { matchLengths, mixStreams, sparsify } from './stream-ops.ts';
import { topLogits } from './top-logits.ts';

/** The reference pack for tests and self-checks: plain TypeScript, one thread, matrices in file layout. */
export function createReferencePackFactory(): KernelPackFactory {
  return {
    name: 'reference',
    maxArenaBytes: 2 ** 32, // Node 20's limit for one ArrayBuffer
    matrixBytes: (type, numRows, numCols) => checkedMatrixBytes({ name: 'matrix', type, numRows, numCols }),
    create: async (options) => createReferencePack(options),
  };
}

function createReferencePack({ arenaBytes }: KernelPackOptions): KernelPack {
  const arena = createArena(new ArrayBuffer(arenaBytes));
  const primitives = {
    rmsNorm: (op: RmsNormOp) => rmsNorm(arena, op),
    rope: (op: RopeOp) => rope(arena, op),
    writeKv: (op: WriteKvOp) => writeKv(arena, op),
    gatedActivation: (op: GatedActivationOp) => gatedActivation(arena, op),
  };
  return {
    name: 'reference',
    numThreads: 1,
    arena,
    loadMatrix(source) {
      const { name, type, numRows, numCols } = source;
      const sizeBytes = checkedMatrixBytes(source);
      const offset = arena.allocate(sizeBytes, name);
      source.readInto(arena.u8(offset, sizeBytes), 0);
      return { name, type, numRows, numCols, offset, sizeBytes };
    },
    gatherRows: (op) => gatherRows(arena, op),
    ...primitives,
    ...composeOps({ ...primitives, multiply: (op) => matmul(arena, op) }),
    experts: (op) => experts(arena, op),
    packPages: (op) => packPages(arena, op),
    attention: (op) => attention(arena, op),
    layerNorm: (op) => layerNorm(arena, op),
    gelu: (op) => gelu(arena, op),
    add: (op) => add(arena, op),
    multiply: (op) => multiply(arena, op),
    sigmoidGate: (op) => sigmoidGate(arena, op),
    copyRows: (op) => copyRows(arena, op),
    copyBlocks: (op) => copyBlocks(arena, op),
    softcap: (op) => softcap(arena, op),
    scale: (op) => scale(arena, op),
    lowRankDelta: (op) => lowRankDelta(arena, op),
    causalConv: (op) => causalConv(arena, op),
    selectiveScan: (op) => selectiveScan(arena, op),
    deltaScan: (op) => deltaScan(arena, op),
    mixStreams: (op) => mixStreams(arena, op),
    matchLengths: (op) => matchLengths(arena, op),
    sparsify: (op) => sparsify(arena, op),
    distances: (op) => distances(arena, op),
    searchGraph: (op) => searchGraph(arena, op),
    pickLinks: (op) => pickLinks(arena, op),
    topLogits: (op) => topLogits(arena, op),
    sync: async () => {},
    finish: () => {},
    dispose: async () => {},
  };
}
