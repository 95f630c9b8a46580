import { RuvLLMError } from '../core/errors.ts';
import type { TensorTypeName } from '../core/tensor-type.ts';
import { showValue } from '../core/show-value.ts';
import { quantFormats } from '../quant/index.ts';
import { quote } from './failures.ts';
import { type ByteSink, createHeaderWriter, createMemorySink } from './header-writer.ts';
import { writeKeyValue } from './key-values.ts';
import { DEFAULT_ALIGNMENT } from './limits.ts';
import { measureTensor } from './tensor-table.ts';
import type { MetadataEntry } from './types.ts';

/** One tensor to write. Its data may come in chunks, created on demand in a reused buffer. */
export interface TensorToWrite {
  readonly name: string;
  readonly type: TensorTypeName;
  /** GGUF order: dims[0] is contiguous. */
  readonly dims: readonly number[];
  readonly data: Uint8Array | (() => Iterable<Uint8Array>);
}

/** The content of a GGUF file to write. */
export interface GgufToWrite {
  readonly metadata: readonly MetadataEntry[];
  readonly tensors: readonly TensorToWrite[];
}

/**
 * Writes a GGUF v3 file. The whole header is built and checked before the first byte reaches the sink; tensor data
 * passes in chunks. The same input gives the same bytes.
 */
export function writeGguf(file: GgufToWrite, sink: ByteSink): void {
  const alignment = checkedAlignment(file.metadata);
  const sizes = checkedSizes(file.tensors);
  const padding = (sizeBytes: number): number => (alignment - (sizeBytes % alignment)) % alignment;

  const header = createMemorySink();
  const writer = createHeaderWriter(header);
  writer.bytes(new TextEncoder().encode('GGUF'));
  writer.u32(3);
  writer.u64(file.tensors.length);
  writer.u64(file.metadata.length);
  for (const entry of file.metadata) writeKeyValue(writer, entry);
  let offset = 0;
  file.tensors.forEach((tensor, i) => {
    writer.string(tensor.name, `name of tensor ${quote(tensor.name)}`);
    writer.u32(tensor.dims.length);
    for (const dim of tensor.dims) writer.u64(dim);
    writer.u32(quantFormats[tensor.type].ggufId);
    writer.u64(offset);
    offset += sizes[i]! + padding(sizes[i]!);
  });
  writer.zeros(padding(writer.sizeBytes));
  writer.flush();
  sink.write(header.toBytes());

  file.tensors.forEach((tensor, i) => {
    writeData(tensor, sizes[i]!, sink);
    const missing = padding(sizes[i]!);
    if (missing > 0) sink.write(new Uint8Array(missing));
  });
}

function writeData(tensor: TensorToWrite, sizeBytes: number, sink: ByteSink): void {
  let written = 0;
  for (const chunk of typeof tensor.data === 'function' ? tensor.data() : [tensor.data]) {
    written += chunk.byteLength;
    if (written > sizeBytes) break;
    sink.write(chunk);
  }
  if (written !== sizeBytes) {
    const relation = written > sizeBytes ? 'more than' : `only ${written} of`;
    fail(`tensor ${quote(tensor.name)}: its data has ${relation} ${sizeBytes} bytes`);
  }
}

function checkedSizes(tensors: readonly TensorToWrite[]): number[] {
  const names = new Set<string>();
  return tensors.map(({ name, type, dims }) => {
    if (name.length === 0 || names.has(name)) fail(`tensor name ${quote(name)} is empty or duplicated`);
    names.add(name);
    const size = measureTensor(type, dims);
    return typeof size === 'string' ? fail(`tensor ${quote(name)} ${size}`) : size.sizeBytes;
  });
}

function checkedAlignment(metadata: readonly MetadataEntry[]): number {
  const keys = new Set(metadata.map(({ key }) => key));
  if (keys.size < metadata.length || keys.has('')) fail('a metadata key is empty or duplicated');
  const entry = metadata.find(({ key }) => key === 'general.alignment');
  if (entry === undefined) return DEFAULT_ALIGNMENT;
  const { type, value } = entry;
  if (
    type !== 'u32' ||
    typeof value !== 'number' ||
    value < 8 ||
    value > 65_536 ||
    !Number.isInteger(Math.log2(value))
  ) {
    fail(`general.alignment must be a u32 power of two from 8 to 65536, got ${type} ${showValue(value)}`);
  }
  return value;
}

function fail(message: string): never {
  throw new RuvLLMError('invalid_option', `cannot write GGUF: ${message}`);
}
