/** What one call may bring. Each is checked before anything of that size is allocated. */
export const STORE_LIMITS = {
  /** Of the sealed names: the same bound as in the key ring. */
  tenantBytes: 1024,
  /** Records or edges in one call: one transaction holds the writer for that long. */
  itemsPerCall: 1000,
  idsPerCall: 1000,
  bodyBytes: 4 * 2 ** 20,
  /** Of all bodies and vectors of one call. */
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
  ef: 4096,
  sweep: 100_000,
  /** Milliseconds a `Date` can hold. */
  timeMs: 8.64e15,
} as const;

/** A cosine of vectors shorter or longer than this loses its meaning in 32-bit floats; squared lengths. */
export const MIN_SQUARED_LENGTH = 1e-30;
export const MAX_SQUARED_LENGTH = 1e30;
