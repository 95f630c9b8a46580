import type { KvPrecision } from './contract.ts';

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
  packPages: 10,
  lowRankDown: 11,
  lowRankUp: 12,
  distances: 13,
  /** Only in packs that store weights on disk. */
  image: 14,
  topLogits: 15,
  layerNorm: 16,
  searchGraph: 17,
  pickLinks: 18,
  causalConv: 19,
  selectiveScan: 20,
  route: 21,
  planExperts: 22,
  roundExperts: 23,
  experts: 24,
  combine: 25,
  copyBlocks: 26,
  deltaScan: 27,
  mixStreams: 28,
  matchLengths: 29,
  sparsify: 30,
} as const;

/** Numbers of page precisions in kernels. */
export const PAGE_KINDS: Readonly<Record<KvPrecision, number>> = { f16: 0, f32: 1, q8: 2, q4: 3 };
