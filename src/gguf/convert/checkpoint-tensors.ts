import { quantFormats } from '../../quant/index.ts';
import { invalidFile, quote, unsupportedFile } from '../failures.ts';
import type { SafetensorInfo, SafetensorsDtype, SafetensorsFile } from '../safetensors.ts';
import type { FloatTensor } from './float-tensor.ts';
import type { ValueReader } from './value-reader.ts';

/** The tensors of a checkpoint. A missing tensor or one of another shape is `invalid_model_file`. */
export interface CheckpointTensors {
  has(from: string): boolean;
  /** The values of a tensor; `shape` as in the checkpoint. */
  values(from: string, shape: readonly number[]): ValueReader;
  /** The bytes of a tensor of 8-bit integers: fills `out` from byte `start`. */
  bytes(from: string, shape: readonly number[]): (start: number, out: Uint8Array) => void;
  /** A tensor under its GGUF name; `dims` in GGUF order. */
  take(from: string, name: string, dims: readonly number[]): FloatTensor;
  /** Omits a tensor. */
  drop(from: string): void;
  /** Throws if a tensor was never read: `what` names the kind of model. */
  rejectUnused(what: string): void;
}

/** How names in the files become those of a text model; null: the tensor is omitted. */
export type TensorRename = (name: string) => string | null;

/** The tensors of all shards except the omitted ones. */
export function openCheckpointTensors(files: readonly SafetensorsFile[], rename: TensorRename): CheckpointTensors {
  const tensors = new Map<string, { file: SafetensorsFile; info: SafetensorInfo }>();
  for (const file of files) {
    for (const info of file.tensors.values()) {
      const name = rename(info.name);
      if (name === null) continue;
      if (tensors.has(name)) invalidFile(`${file.source.name}: tensor ${quote(name)} is also in an earlier file`);
      tensors.set(name, { file, info });
    }
  }
  const used = new Set<string>();
  const find = (from: string, expected: readonly number[]): { file: SafetensorsFile; info: SafetensorInfo } => {
    const tensor = tensors.get(from);
    if (tensor === undefined) invalidFile(`tensor ${quote(from)} is missing from the checkpoint`, { tensor: from });
    used.add(from);
    if (tensor.info.shape.join() !== expected.join()) {
      const shape = tensor.info.shape.join(' x ');
      invalidFile(`tensor ${quote(from)} is ${shape}, config.json implies ${expected.join(' x ')}`, { tensor: from });
    }
    return tensor;
  };
  const values = (from: string, shape: readonly number[]): ValueReader => {
    const { file, info } = find(from, shape);
    return createFloatReader(file, info);
  };
  return {
    has: (from) => tensors.has(from),
    values,
    bytes(from, shape) {
      const { file, info } = find(from, shape);
      if (info.dtype !== 'U8')
        unsupportedFile(`tensor ${quote(from)} has dtype ${info.dtype}; packed blocks and scales have U8`);
      return (start, out) => file.readTensor(info, out, start);
    },
    take(from, name, dims) {
      const read = values(from, dims.toReversed());
      return { name, dims, readRows: (firstRow, out) => read(firstRow * dims[0]!, out) };
    },
    drop: (from) => void tensors.delete(from),
    rejectUnused(what) {
      const unknown = [...tensors.keys()].find((name) => !used.has(name));
      if (unknown !== undefined)
        unsupportedFile(`tensor ${quote(unknown)} does not belong in a ${what} model`, { tensor: unknown });
    },
  };
}

/** Dtypes that are also GGUF types. */
const FLOAT_DTYPES: Partial<Record<SafetensorsDtype, 'F32' | 'F16' | 'BF16'>> = {
  F32: 'F32',
  F16: 'F16',
  BF16: 'BF16',
};

function createFloatReader(file: SafetensorsFile, info: SafetensorInfo): ValueReader {
  const type = FLOAT_DTYPES[info.dtype];
  if (type === undefined)
    unsupportedFile(`tensor ${quote(info.name)} has dtype ${info.dtype}; supported are F32, F16 and BF16`);
  const format = quantFormats[type];
  return (start, out) => {
    const bytes = new Uint8Array(out.length * format.blockBytes);
    file.readTensor(info, bytes, start * format.blockBytes);
    format.dequantize(bytes, 0, out, 0, out.length);
  };
}
