import type { TensorTypeName } from '../../core/tensor-type.ts';
import { quantFormats, rowBytes } from '../../quant/index.ts';
import { createMetadata } from '../metadata.ts';
import type { GgufFile, Metadata, MetadataEntry, TensorInfo } from '../types.ts';
import type { GgufToWrite, TensorToWrite } from '../writer.ts';

/** A model to quantize, read tensor by tensor. */
export interface QuantizeSource {
  readonly metadata: Metadata;
  readonly entries: readonly MetadataEntry[];
  readonly tensors: readonly QuantizeTensor[];
}

/** A tensor to quantize; its rows can be read several times. */
export interface QuantizeTensor {
  readonly name: string;
  readonly type: TensorTypeName;
  /** GGUF order: dims[0] is contiguous. */
  readonly dims: readonly number[];
  readonly numElements: number;
  readonly sizeBytes: number;
  /** Whole rows in order, as the bytes of `type`; a chunk is valid until the next. */
  chunks(): Iterable<Uint8Array>;
}

/** Values decoded at a time, in whole rows: bounds the memory. */
const STRIP_VALUES = 1 << 20;

/** The tensors of a GGUF file. */
export function sourceFromGguf(gguf: GgufFile): QuantizeSource {
  return {
    metadata: gguf.metadata,
    entries: gguf.entries,
    tensors: [...gguf.tensors.values()].map((tensor) => ({ ...tensor, chunks: () => readStrips(gguf, tensor) })),
  };
}

function* readStrips(gguf: GgufFile, tensor: TensorInfo): Generator<Uint8Array> {
  const numCols = tensor.dims[0]!;
  const stripBytes = Math.max(1, Math.floor(STRIP_VALUES / numCols)) * rowBytes(tensor.type, numCols);
  const strip = new Uint8Array(Math.min(stripBytes, tensor.sizeBytes));
  for (let at = 0; at < tensor.sizeBytes; at += stripBytes) {
    const bytes = strip.subarray(0, Math.min(stripBytes, tensor.sizeBytes - at));
    gguf.readTensor(tensor, bytes, at);
    yield bytes;
  }
}

/** The tensors of a file that is converted while it is read. */
export function sourceFromConversion({ metadata, tensors }: GgufToWrite): QuantizeSource {
  return {
    metadata: createMetadata(new Map(metadata.map(({ key, value }) => [key, value]))),
    entries: metadata,
    tensors: tensors.map(({ name, type, dims, data }: TensorToWrite) => {
      const numElements = dims.reduce((product, dim) => product * dim, 1);
      const sizeBytes = (numElements / dims[0]!) * rowBytes(type, dims[0]!);
      return { name, type, dims, numElements, sizeBytes, chunks: () => (typeof data === 'function' ? data() : [data]) };
    }),
  };
}

/** The values of a tensor, a strip of whole rows at a time; a strip is valid until the next. */
export function* floatStrips(tensor: QuantizeTensor): Generator<{ values: Float32Array; firstRow: number }> {
  const { dequantize, blockSize, blockBytes } = quantFormats[tensor.type];
  let values = new Float32Array(0);
  let firstRow = 0;
  for (const bytes of tensor.chunks()) {
    const count = (bytes.length / blockBytes) * blockSize;
    if (values.length < count) values = new Float32Array(count);
    const strip = values.subarray(0, count);
    dequantize(bytes, 0, strip, 0, count / blockSize);
    yield { values: strip, firstRow };
    firstRow += count / tensor.dims[0]!;
  }
}
