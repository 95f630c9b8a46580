import type { ByteSource } from '../core/byte-source.ts';
import { RuvLLMError } from '../core/errors.ts';
import { showValue } from '../core/show-value.ts';
import { invalidFile, quote, unsupportedFile } from './failures.ts';
import { createHeaderCursor, type HeaderCursor } from './header-cursor.ts';
import { readKeyValues } from './key-values.ts';
import { DEFAULT_ALIGNMENT, type GgufLimits, MIN_ALIGNMENT, resolveGgufLimits } from './limits.ts';
import { createMetadata } from './metadata.ts';
import { MIN_TENSOR_BYTES, type OnUnknownType, placeTensors, readTensorTable } from './tensor-table.ts';
import type { GgufFile, MetadataEntry, TensorInfo } from './types.ts';

const MAGIC = 0x46554747; // "GGUF"
/** The formats before GGUF, by their first four bytes as a little-endian word. */
const OLD_MAGICS = new Map([
  [0x67676d6c, 'GGML'],
  [0x67676d66, 'GGMF'],
  [0x67676a74, 'GGJT'],
  [0x67676c61, 'GGLA'],
]);
const ALIGNMENT_KEY = 'general.alignment';
/** Key length, type and a one-byte value: the minimum of a key/value pair. */
const MIN_PAIR_BYTES = 8 + 4 + 1;

/**
 * Opens a GGUF v2 or v3 file: reads and checks its header, but no tensor data. With `onUnknownType`, tensors of
 * unsupported types are reported and left out instead of refused.
 */
export function openGguf(source: ByteSource, limits?: Partial<GgufLimits>, onUnknownType?: OnUnknownType): GgufFile {
  const file = openGgufPart(source, limits, onUnknownType);
  const numParts = file.metadata.number('split.count', 1);
  if (numParts > 1) {
    unsupportedFile(
      `${source.name} is part ${file.metadata.number('split.no', 0) + 1} of a model split over ${numParts} files: ` +
        'open them together with openSplitGguf',
      { numParts },
    );
  }
  return file;
}

/** Like `openGguf`, but accepts one part of a split model. */
export function openGgufPart(
  source: ByteSource,
  options?: Partial<GgufLimits>,
  onUnknownType?: OnUnknownType,
): GgufFile {
  const limits = resolveGgufLimits(options);
  const cursor = createHeaderCursor(source, limits.maxHeaderBytes);

  const version = readVersion(source.name, cursor);
  const numTensors = readCount(cursor, source.name, 'tensors', limits.maxTensors);
  const numPairs = readCount(cursor, source.name, 'metadata entries', limits.maxMetadataEntries);
  cursor.need(numTensors * MIN_TENSOR_BYTES + numPairs * MIN_PAIR_BYTES, `header of ${numTensors} tensors`);
  const entries = readKeyValues(cursor, limits, numPairs);
  const alignment = readAlignment(source.name, entries, limits);
  const headerTensors = readTensorTable(cursor, limits, numTensors, onUnknownType);
  const dataStart = Math.ceil(cursor.offset / alignment) * alignment;
  const tensors = placeTensors(source.name, headerTensors, dataStart, alignment, source.sizeBytes);
  const metadata = createMetadata(new Map(entries.map((entry) => [entry.key, entry.value])), source.name);
  return { version, metadata, entries, alignment, ...createTensorAccess(source, tensors) };
}

/** Tensor lookup and reading of a `GgufFile`. */
export function createTensorAccess(
  source: ByteSource,
  tensors: ReadonlyMap<string, TensorInfo>,
): Pick<GgufFile, 'source' | 'tensors' | 'tensor' | 'readTensor'> {
  return {
    source,
    tensors,
    tensor: (name) =>
      tensors.get(name) ?? invalidFile(`${source.name}: tensor ${quote(name)} is missing`, { tensor: name }),
    readTensor(tensor, target, byteOffset = 0) {
      if (!(byteOffset >= 0) || byteOffset + target.byteLength > tensor.sizeBytes) {
        throw new RuvLLMError(
          'internal',
          `cannot read ${target.byteLength} bytes at byte ${byteOffset} of tensor ${quote(tensor.name)}, which has ${tensor.sizeBytes}`,
        );
      }
      source.readInto(target, tensor.offset + byteOffset);
    },
  };
}

function readVersion(name: string, cursor: HeaderCursor): number {
  const magic = cursor.u32('magic');
  const oldContainer = OLD_MAGICS.get(magic);
  if (oldContainer !== undefined)
    unsupportedFile(`${name} is a ${oldContainer} file, which predates GGUF; convert it to GGUF`);
  if (magic !== MAGIC) {
    invalidFile(`${name} is not a GGUF file: it starts with 0x${magic.toString(16).padStart(8, '0')}, not "GGUF"`);
  }
  const version = cursor.u32('version');
  if (version !== 0 && (version & 0xffff) === 0) unsupportedFile(`${name} is a big-endian GGUF file`, { version });
  if (version !== 2 && version !== 3) {
    unsupportedFile(`${name} is GGUF version ${version}; versions 2 and 3 are supported`, { version });
  }
  return version;
}

function readCount(cursor: HeaderCursor, name: string, what: string, max: number): number {
  const byteOffset = cursor.offset;
  const count = cursor.count(`number of ${what}`);
  if (count > max) {
    invalidFile(`${name} declares ${count} ${what} at byte ${byteOffset}, the limit is ${max}`, { byteOffset });
  }
  return count;
}

function readAlignment(name: string, entries: readonly MetadataEntry[], limits: Readonly<GgufLimits>): number {
  const entry = entries.find(({ key }) => key === ALIGNMENT_KEY);
  if (entry === undefined) return DEFAULT_ALIGNMENT;
  const { type, value } = entry;
  const isPowerOfTwo = typeof value === 'number' && Number.isInteger(Math.log2(value));
  if (type !== 'u32' || !isPowerOfTwo || value < MIN_ALIGNMENT || value > limits.maxAlignment) {
    invalidFile(
      `${name}: metadata key "${ALIGNMENT_KEY}" must be a u32 power of two from ${MIN_ALIGNMENT} to ` +
        `${limits.maxAlignment}, got ${type} ${showValue(value)}`,
      { key: ALIGNMENT_KEY },
    );
  }
  return value;
}
