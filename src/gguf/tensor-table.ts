import { formatByGgufId, quantFormats } from '../quant/index.ts';
import type { TensorTypeName } from '../core/tensor-type.ts';
import { showValue } from '../core/show-value.ts';
import { invalidFile, quote, unsupportedFile } from './failures.ts';
import type { HeaderCursor } from './header-cursor.ts';
import { type GgufLimits, MAX_DIMS } from './limits.ts';
import type { TensorInfo } from './types.ts';

/** Name length, dimension count, one dimension, type, offset: the minimum of a tensor in the header. */
export const MIN_TENSOR_BYTES = 8 + 4 + 8 + 4 + 8;

/** Types of llama.cpp that are not for weights, or were removed. */
const OTHER_TYPES: Readonly<Record<number, string>> = {
  4: 'Q4_2',
  5: 'Q4_3',
  9: 'Q8_1',
  24: 'I8',
  25: 'I16',
  26: 'I32',
  27: 'I64',
  28: 'F64',
  31: 'Q4_0_4_4',
  32: 'Q4_0_4_8',
  33: 'Q4_0_8_8',
};

/** A type number for people: its name if known, and the number. */
export function typeName(id: number): string {
  const name = formatByGgufId(id)?.name ?? OTHER_TYPES[id];
  return name === undefined ? String(id) : `${id} (${name})`;
}

/** A tensor as in the header: its offset is relative to the data section. */
export interface HeaderTensor extends TensorInfo {
  /** Position of its header entry, for errors. */
  readonly headerOffset: number;
}

/** Element count and bytes of a tensor, or the reason why its dimensions are invalid. */
export function measureTensor(
  type: TensorTypeName,
  dims: readonly number[],
): { numElements: number; sizeBytes: number } | string {
  if (!Object.hasOwn(quantFormats, type)) return `has element type ${showValue(type)}, which is not supported`;
  const format = quantFormats[type];
  if (dims.length < 1 || dims.length > MAX_DIMS) return `has ${dims.length} dimensions, must have 1 to ${MAX_DIMS}`;
  let numElements = 1;
  for (const dim of dims) {
    if (!Number.isSafeInteger(dim) || dim < 1) return `has a dimension of ${dim}`;
    numElements *= dim;
  }
  const sizeBytes = (numElements / format.blockSize) * format.blockBytes;
  if (!Number.isSafeInteger(numElements) || !(sizeBytes <= Number.MAX_SAFE_INTEGER)) {
    return `has ${dims.join(' x ')} elements, more than 2^53 bytes`;
  }
  if (dims[0]! % format.blockSize !== 0) {
    return `has ${dims[0]} columns, not a multiple of ${type}'s block of ${format.blockSize}`;
  }
  return { numElements, sizeBytes };
}

/** Called with each tensor of an unsupported type, which is then left out. */
export type OnUnknownType = (tensor: string, typeId: number) => void;

/**
 * Reads `count` tensor descriptions; the caller has checked `count` against the limits. Throws `unsupported` for an
 * unknown type, unless there is `onUnknownType`.
 */
export function readTensorTable(
  cursor: HeaderCursor,
  limits: Readonly<GgufLimits>,
  count: number,
  onUnknownType?: OnUnknownType,
): Map<string, HeaderTensor> {
  const tensors = new Map<string, HeaderTensor>();
  for (let i = 0; i < count; i++) {
    const headerOffset = cursor.offset;
    const name = cursor.string(limits.maxTensorNameBytes, `name of tensor ${i}`);
    const what = `tensor ${quote(name)} (described at byte ${headerOffset})`;
    const fail = (reason: string): never =>
      invalidFile(`${cursor.sourceName}: ${what} ${reason}`, { tensor: name, byteOffset: headerOffset });
    if (name.length === 0) fail('has an empty name');
    if (tensors.has(name)) fail('is duplicated');
    const numDims = cursor.u32(what);
    if (numDims < 1 || numDims > MAX_DIMS) fail(`has ${numDims} dimensions, must have 1 to ${MAX_DIMS}`);
    const dims: number[] = [];
    for (let d = 0; d < numDims; d++) dims.push(cursor.count(what));
    const typeId = cursor.u32(what);
    const format = formatByGgufId(typeId);
    if (format === null) {
      if (onUnknownType !== undefined) {
        onUnknownType(name, typeId);
        cursor.count(what);
        continue;
      }
      unsupportedFile(`${cursor.sourceName}: ${what} has element type ${typeName(typeId)}, which is not supported`, {
        tensor: name,
        type: typeId,
      });
    }
    const size = measureTensor(format.name, dims);
    if (typeof size === 'string') return fail(size);
    const offset = cursor.count(what);
    tensors.set(name, { name, type: format.name, dims, ...size, offset, headerOffset });
  }
  return tensors;
}

/** Converts offsets to absolute ones; each tensor must be aligned, inside the file and without overlap. */
export function placeTensors(
  sourceName: string,
  tensors: ReadonlyMap<string, HeaderTensor>,
  dataStart: number,
  alignment: number,
  fileBytes: number,
): Map<string, TensorInfo> {
  const placed = new Map<string, TensorInfo>();
  for (const { headerOffset, ...tensor } of tensors.values()) {
    const what = `${sourceName}: tensor ${quote(tensor.name)} (described at byte ${headerOffset})`;
    const data = { tensor: tensor.name, byteOffset: headerOffset };
    if (tensor.offset % alignment !== 0) {
      invalidFile(`${what} has offset ${tensor.offset}, not a multiple of the alignment ${alignment}`, data);
    }
    const offset = dataStart + tensor.offset;
    // An offset near 2^64 loses precision here, but stays far beyond the end of any file.
    if (offset + tensor.sizeBytes > fileBytes) {
      invalidFile(`${what} ends at byte ${offset + tensor.sizeBytes}, the file has ${fileBytes}`, data);
    }
    placed.set(tensor.name, Object.freeze({ ...tensor, dims: Object.freeze(tensor.dims), offset }));
  }
  const inOrder = [...placed.values()].sort((a, b) => a.offset - b.offset);
  for (let i = 1; i < inOrder.length; i++) {
    const [before, after] = [inOrder[i - 1]!, inOrder[i]!];
    const end = before.offset + before.sizeBytes;
    if (end > after.offset) {
      invalidFile(
        `${sourceName}: tensor ${quote(after.name)} starts at byte ${after.offset}, inside tensor ` +
          `${quote(before.name)} (bytes ${before.offset} to ${end})`,
        { tensor: after.name, byteOffset: after.offset },
      );
    }
  }
  return placed;
}
