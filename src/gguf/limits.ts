import { integerOption, resolveOptions } from '../core/options.ts';

/** Limits beyond which a file counts as hostile. Real files stay far below all of them. */
export interface GgufLimits {
  /** All bytes before the tensor data. A vocabulary of 256,000 tokens with its merges takes about 15 MB. */
  maxHeaderBytes: number;
  maxMetadataEntries: number;
  maxTensors: number;
  /** The format's limit for keys. */
  maxKeyBytes: number;
  maxTensorNameBytes: number;
  /** Some files contain a whole tokenizer.json as one string. */
  maxStringBytes: number;
  maxArrayLength: number;
  maxArrayDepth: number;
  /** An empty inner array has 12 bytes in the file and about 200 in memory, so they are counted over the whole file. */
  maxInnerArrays: number;
  maxAlignment: number;
}

/** Not adjustable: every consumer of `TensorInfo.dims` assumes it. */
export const MAX_DIMS = 4;
/** Not adjustable: below 8 a block of any type could straddle two words. */
export const MIN_ALIGNMENT = 8;
export const DEFAULT_ALIGNMENT = 32;

const readers = {
  maxHeaderBytes: integerOption(128 * 2 ** 20, 24, 2 ** 31),
  maxMetadataEntries: integerOption(65_536, 0, 2 ** 24),
  maxTensors: integerOption(65_536, 0, 2 ** 24),
  maxKeyBytes: integerOption(65_535, 1, 65_535),
  maxTensorNameBytes: integerOption(256, 1, 65_535),
  maxStringBytes: integerOption(64 * 2 ** 20, 0, 2 ** 29),
  maxArrayLength: integerOption(2 ** 22, 0, 2 ** 28),
  maxArrayDepth: integerOption(4, 1, 16),
  maxInnerArrays: integerOption(65_536, 0, 2 ** 24),
  maxAlignment: integerOption(65_536, MIN_ALIGNMENT, 2 ** 30),
};

export function resolveGgufLimits(limits?: Partial<GgufLimits>): Readonly<GgufLimits> {
  return resolveOptions<GgufLimits>('gguf limits', limits, readers);
}
