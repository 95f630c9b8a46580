/** Limits of one call, checked before anything is allocated. */
export const STORE_LIMITS = {
  /** The same as in the key ring. */
  tenantBytes: 1024,
  /** Records or edges: one transaction blocks other writers. */
  itemsPerCall: 1000,
  idsPerCall: 1000,
  bodyBytes: 4 * 2 ** 20,
  /** Bodies and vectors together. */
  callBytes: 64 * 2 ** 20,
  bodyDepth: 64,
  bodyValues: 200_000,
  fields: 32,
  wordBytes: 1024,
  spaceBytes: 256,
  relationBytes: 128,
  vectorLength: 8192,
  conditions: 32,
  valuesPerCondition: 256,
  pageRecords: 1000,
  edgesPerQuery: 10_000,
  k: 1000,
  /** Of a search by words: as much as one text. */
  queryBytes: 4 * 2 ** 20,
  ef: 4096,
  sweep: 100_000,
  /** Milliseconds a `Date` can hold. */
  timeMs: 8.64e15,
} as const;

/** Squared lengths outside of these bounds lose their precision in 32-bit floats. */
export const MIN_SQUARED_LENGTH = 1e-30;
export const MAX_SQUARED_LENGTH = 1e30;
