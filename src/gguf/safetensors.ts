import type { ByteSource } from '../core/byte-source.ts';
import { RuvLLMError } from '../core/errors.ts';
import { integerOption, resolveOptions } from '../core/options.ts';
import { invalidFile, quote, unsupportedFile } from './failures.ts';
import { parseFlatJson } from './flat-json.ts';
import { decodeUtf8 } from './utf8.ts';

/** Limits of a safetensors file. */
export interface SafetensorsLimits {
  /** Default 32 MiB. Headers of real shards have less than 1 MB; the reference reader allows 100 MB. */
  maxHeaderBytes: number;
}

/** Bytes per element; types smaller than a byte are unsupported. */
const DTYPE_BYTES = {
  BOOL: 1,
  U8: 1,
  I8: 1,
  F8_E5M2: 1,
  F8_E4M3: 1,
  I16: 2,
  U16: 2,
  F16: 2,
  BF16: 2,
  I32: 4,
  U32: 4,
  F32: 4,
  I64: 8,
  U64: 8,
  F64: 8,
} as const;
/** The supported element types of safetensors. */
export type SafetensorsDtype = keyof typeof DTYPE_BYTES;

/** A tensor of a safetensors file: its type, shape and position. */
export interface SafetensorInfo {
  readonly name: string;
  readonly dtype: SafetensorsDtype;
  /** Row-major: the last is contiguous. Empty for a scalar. */
  readonly shape: readonly number[];
  readonly numElements: number;
  /** Absolute byte offset in the file. */
  readonly offset: number;
  readonly sizeBytes: number;
}

/** An open safetensors file: header in memory, tensor bytes read on demand. */
export interface SafetensorsFile {
  readonly metadata: ReadonlyMap<string, string>;
  readonly tensors: ReadonlyMap<string, SafetensorInfo>;
  readonly source: ByteSource;
  /** The tensor, or `invalid_model_file` with its name. */
  tensor(name: string): SafetensorInfo;
  /** Fills `target` with the tensor's bytes starting at `byteOffset`; never reads past the tensor. */
  readTensor(tensor: SafetensorInfo, target: Uint8Array, byteOffset?: number): void;
}

const PREFIX_BYTES = 8;
const METADATA_KEY = '__metadata__';

/** Opens a safetensors file: reads and checks its header, but no tensor data. */
export function openSafetensors(source: ByteSource, options?: Partial<SafetensorsLimits>): SafetensorsFile {
  const limits = resolveOptions<SafetensorsLimits>('safetensors limits', options, {
    maxHeaderBytes: integerOption(32 * 2 ** 20, 2, 100_000_000),
  });
  const text = readHeaderText(source, limits.maxHeaderBytes);
  const header = parseFlatJson(text.json, source.name);
  const metadata = new Map<string, string>();
  const tensors = new Map<string, SafetensorInfo>();
  for (const [name, value] of Object.entries(header)) {
    if (name === METADATA_KEY) readMetadata(source.name, value, metadata);
    else tensors.set(name, readTensorInfo(source, name, value, text.dataStart));
  }
  checkCoverage(source, tensors, text.dataStart);
  return {
    metadata,
    tensors,
    source,
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

function readHeaderText(source: ByteSource, maxHeaderBytes: number): { json: string; dataStart: number } {
  const { name, sizeBytes } = source;
  if (sizeBytes < PREFIX_BYTES)
    invalidFile(`${name}: a safetensors file has at least 8 bytes, this one has ${sizeBytes}`);
  const prefix = new Uint8Array(PREFIX_BYTES);
  source.readInto(prefix, 0);
  const headerBytes = new DataView(prefix.buffer).getBigUint64(0, true);
  if (headerBytes > BigInt(Math.min(maxHeaderBytes, sizeBytes - PREFIX_BYTES))) {
    invalidFile(
      `${name}: header of ${headerBytes} bytes at byte 0, the file has ${sizeBytes} and the limit is ${maxHeaderBytes}`,
      { byteOffset: 0 },
    );
  }
  const bytes = new Uint8Array(Number(headerBytes));
  source.readInto(bytes, PREFIX_BYTES);
  const json = decodeUtf8(bytes, 0, bytes.length);
  if (json === null) invalidFile(`${name}: the header at byte 8 is not valid UTF-8`, { byteOffset: PREFIX_BYTES });
  if (!json.startsWith('{')) invalidFile(`${name}: the header at byte 8 does not start with "{"`, { byteOffset: 8 });
  return { json, dataStart: PREFIX_BYTES + bytes.length };
}

function readMetadata(sourceName: string, value: unknown, metadata: Map<string, string>): void {
  const fail = (what: string): never => invalidFile(`${sourceName}: ${METADATA_KEY} ${what}`, { key: METADATA_KEY });
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return fail('must map strings to strings');
  for (const [key, text] of Object.entries(value)) {
    if (typeof text !== 'string') return fail(`must map strings to strings; ${quote(key)} does not`);
    metadata.set(key, text);
  }
}

function readTensorInfo(source: ByteSource, name: string, value: unknown, dataStart: number): SafetensorInfo {
  const what = `${source.name}: tensor ${quote(name)}`;
  const fail = (reason: string): never => invalidFile(`${what} ${reason}`, { tensor: name });
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    return fail('must be described by an object');
  const { dtype, shape, data_offsets: range } = value as Record<string, unknown>;
  const extra = Object.keys(value).find((key) => !['dtype', 'shape', 'data_offsets'].includes(key));
  if (extra !== undefined) return fail(`has an unknown field ${quote(extra)}`);
  if (typeof dtype !== 'string') return fail('has no dtype');
  if (!Object.hasOwn(DTYPE_BYTES, dtype)) {
    unsupportedFile(`${what} has dtype ${quote(dtype)}, which is not supported`, { tensor: name });
  }
  if (!isSizeList(shape)) return fail('has no shape of non-negative integers');
  if (!isSizeList(range) || range.length !== 2) return fail('has no pair of data_offsets');
  const [begin, end] = range as [number, number];
  const numElements = shape.reduce((product, dim) => product * dim, 1);
  const sizeBytes = numElements * DTYPE_BYTES[dtype as SafetensorsDtype];
  if (!Number.isSafeInteger(sizeBytes)) return fail(`has ${shape.join(' x ')} elements, more than 2^53 bytes`);
  if (end - begin !== sizeBytes) {
    return fail(`spans bytes ${begin} to ${end}, but ${shape.join(' x ')} of ${dtype} are ${sizeBytes} bytes`);
  }
  if (dataStart + end > source.sizeBytes) {
    return fail(`ends at byte ${dataStart + end}, the file has ${source.sizeBytes}`);
  }
  return { name, dtype: dtype as SafetensorsDtype, shape, numElements, offset: dataStart + begin, sizeBytes };
}

/** The format requires tensors to cover the data section exactly: no gaps for hidden bytes, no overlap. */
function checkCoverage(source: ByteSource, tensors: ReadonlyMap<string, SafetensorInfo>, dataStart: number): void {
  let end = dataStart;
  const inOrder = [...tensors.values()].sort((a, b) => a.offset - b.offset || a.sizeBytes - b.sizeBytes);
  for (const { name, offset, sizeBytes } of inOrder) {
    if (offset !== end) {
      const relation = offset < end ? 'overlaps the previous tensor' : 'leaves a gap after the previous tensor';
      invalidFile(`${source.name}: tensor ${quote(name)} at byte ${offset} ${relation}, which ends at byte ${end}`, {
        tensor: name,
        byteOffset: offset,
      });
    }
    end += sizeBytes;
  }
  if (end !== source.sizeBytes) {
    invalidFile(`${source.name}: the tensors end at byte ${end}, the file has ${source.sizeBytes}`, {
      byteOffset: end,
    });
  }
}

function isSizeList(value: unknown): value is number[] {
  return Array.isArray(value) && value.every((item) => Number.isSafeInteger(item) && (item as number) >= 0);
}
