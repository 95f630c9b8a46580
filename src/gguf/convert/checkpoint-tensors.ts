import { quantFormats } from '../../quant/index.ts';
import { invalidFile, quote, unsupportedFile } from '../failures.ts';
import type { SafetensorInfo, SafetensorsDtype, SafetensorsFile } from '../safetensors.ts';
import type { FloatTensor } from './float-tensor.ts';

/** The tensors of a checkpoint; each is taken once under its GGUF name. */
export interface CheckpointTensors {
  has(from: string): boolean;
  /** `dims` in GGUF order; a missing tensor or one of another shape is `invalid_model_file`. */
  take(from: string, name: string, dims: readonly number[]): FloatTensor;
  /** Omits a tensor. */
  drop(from: string): void;
  /** Throws if tensors remain that `what` does not use. */
  rejectUnused(what: string): void;
}

/** The tensors of all shards except the ignored ones. */
export function openCheckpointTensors(files: readonly SafetensorsFile[], ignored: RegExp): CheckpointTensors {
  const remaining = new Map<string, { file: SafetensorsFile; info: SafetensorInfo }>();
  for (const file of files) {
    for (const info of file.tensors.values()) {
      if (remaining.has(info.name))
        invalidFile(`${file.source.name}: tensor ${quote(info.name)} is also in an earlier file`);
      if (!ignored.test(info.name)) remaining.set(info.name, { file, info });
    }
  }
  return {
    has: (from) => remaining.has(from),
    take(from, name, dims) {
      const tensor = remaining.get(from);
      if (tensor === undefined) invalidFile(`tensor ${quote(from)} is missing from the checkpoint`, { tensor: from });
      remaining.delete(from);
      const expected = dims.toReversed();
      if (tensor.info.shape.join() !== expected.join()) {
        const shape = tensor.info.shape.join(' x ');
        invalidFile(`tensor ${quote(from)} is ${shape}, config.json implies ${expected.join(' x ')}`, { tensor: from });
      }
      return { name, dims, readRows: createFloatReader(tensor.file, tensor.info) };
    },
    drop: (from) => void remaining.delete(from),
    rejectUnused(what) {
      const [unknown] = remaining.keys();
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

function createFloatReader(file: SafetensorsFile, info: SafetensorInfo): FloatTensor['readRows'] {
  const type = FLOAT_DTYPES[info.dtype];
  if (type === undefined)
    unsupportedFile(`tensor ${quote(info.name)} has dtype ${info.dtype}; supported are F32, F16 and BF16`);
  const format = quantFormats[type];
  const numCols = info.shape.at(-1)!;
  return (firstRow, out) => {
    const bytes = new Uint8Array(out.length * format.blockBytes);
    file.readTensor(info, bytes, firstRow * numCols * format.blockBytes);
    format.dequantize(bytes, 0, out, 0, out.length);
  };
}
