import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { RuvLLMError } from '../../core/errors.ts';
import type { KlResult } from '../../core/kl-meter.ts';
import type { ImportanceMatrix } from '../../gguf/imatrix/imatrix.ts';
import { scaleColumns } from '../../gguf/requantize/awq.ts';
import { checkImatrix, importanceEncoder, plainEncoder } from '../../gguf/requantize/encode-rows.ts';
import type { MixName } from '../../gguf/requantize/mixes.ts';
import { type QuantizeSource, sourceFromConversion, sourceFromGguf } from '../../gguf/requantize/quantize-source.ts';
import { planRequantization, requantize, type RequantizedTensor } from '../../gguf/requantize/requantize.ts';
import { writeGguf } from '../../gguf/writer.ts';
import { writeWhole } from '../../platform/node/files/file-sink.ts';
import { openFileSource } from '../../platform/node/files/file-source.ts';
import { openModelFile } from '../../platform/node/files/open-model-file.ts';
import { convertFolder, withConversion } from '../convert-folder.ts';
import { compareOnText, type LogitOptions } from './text-logits.ts';
import { textTokens } from './text-model.ts';

/** How weights are rounded: each for itself, or after activation-aware scaling. */
export type QuantizeMethod = 'round' | 'awq';

/** A file to quantize. */
export interface QuantizeOptions {
  /** A GGUF file, or the folder of a Hugging Face checkpoint. */
  readonly sourcePath: string;
  readonly path: string;
  readonly type: MixName;
  /** Weights of errors; null: all columns are equally important. */
  readonly imatrix: ImportanceMatrix | null;
  /** `awq` scales columns before rounding; requires an importance matrix. */
  readonly method: QuantizeMethod;
  /** Text to compare the files on, and how; null: not compared. */
  readonly comparison: ({ readonly text: string } & LogitOptions) | null;
  readonly onProgress?: (progress: QuantizeProgress) => void;
}

/** After each strip of a tensor, in bytes of the source. */
export interface QuantizeProgress {
  readonly tensor: RequantizedTensor;
  readonly doneBytes: number;
  readonly totalBytes: number;
}

/** The new file, as read back from the disk. */
export interface QuantizeResult {
  readonly path: string;
  readonly sourceBytes: number;
  readonly sizeBytes: number;
  readonly sha256: string;
  /** Tensors and bytes of each type. */
  readonly types: Readonly<Record<string, { readonly numTensors: number; readonly sizeBytes: number }>>;
  readonly bitsPerWeight: number;
  /** Source against result; null without a text. */
  readonly divergence: KlResult | null;
}

const HASH_BYTES = 8 << 20;

/** Writes a model in other tensor types, reads it back, and compares both on a text. */
export async function quantizeFile(options: QuantizeOptions): Promise<QuantizeResult> {
  const { sourcePath, path, type, comparison } = options;
  // A text that is too short is refused before the work.
  if (comparison !== null && !isFolder(sourcePath)) textTokens(sourcePath, comparison.text, comparison.maxTokens);
  const sourceBytes = writeQuantized(options);
  const { sizeBytes, sha256 } = hashFile(path);
  const gguf = openModelFile(path);
  const types: Record<string, { numTensors: number; sizeBytes: number }> = {};
  let numValues = 0;
  let numBytes = 0;
  for (const tensor of gguf.tensors.values()) {
    const entry = (types[tensor.type] ??= { numTensors: 0, sizeBytes: 0 });
    entry.numTensors++;
    entry.sizeBytes += tensor.sizeBytes;
    numValues += tensor.numElements;
    numBytes += tensor.sizeBytes;
  }
  gguf.source.close();
  if (numValues === 0)
    throw new RuvLLMError('invalid_model_file', `${sourcePath} has no tensors to quantize to ${type}`);
  const divergence = comparison === null ? null : await compareFiles(sourcePath, path, comparison);
  return { path, sourceBytes, sizeBytes, sha256, types, bitsPerWeight: (8 * numBytes) / numValues, divergence };
}

/** A folder cannot be run: it is compared as a temporary file. */
async function compareFiles(
  sourcePath: string,
  path: string,
  comparison: NonNullable<QuantizeOptions['comparison']>,
): Promise<KlResult> {
  if (!isFolder(sourcePath)) return compareOnText(sourcePath, path, comparison.text, comparison);
  const folder = mkdtempSync(join(dirname(path), '.ruvllm-source-'));
  try {
    const converted = join(folder, 'source.gguf');
    convertFolder({ folder: sourcePath, path: converted, type: 'F16' });
    return await compareOnText(converted, path, comparison.text, comparison);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Returns the bytes of the source's tensors. */
function writeQuantized(options: QuantizeOptions): number {
  const { sourcePath } = options;
  if (isFolder(sourcePath)) {
    return withConversion({ folder: sourcePath, type: 'F32' }, (file) =>
      writeSource(options, sourceFromConversion(file)),
    );
  }
  const gguf = openModelFile(sourcePath);
  try {
    return writeSource(options, sourceFromGguf(gguf));
  } finally {
    gguf.source.close();
  }
}

function writeSource(options: QuantizeOptions, original: QuantizeSource): number {
  const { path, type, method, onProgress } = options;
  if (options.imatrix !== null) checkImatrix(original.tensors, options.imatrix);
  const { source, imatrix } =
    method === 'awq'
      ? scaleColumns(original, planRequantization(original, type), options.imatrix!)
      : { source: original, imatrix: options.imatrix };
  const plan = planRequantization(source, type);
  const totalBytes = plan.reduce((sum, { tensor }) => sum + tensor.sizeBytes, 0);
  const before = new Map<RequantizedTensor, number>();
  let sum = 0;
  for (const entry of plan) {
    before.set(entry, sum);
    sum += entry.tensor.sizeBytes;
  }
  const onStrip = (tensor: RequantizedTensor, doneBytes: number): void =>
    onProgress?.({ tensor, doneBytes: before.get(tensor)! + doneBytes, totalBytes });
  const encode = imatrix === null ? plainEncoder : importanceEncoder(imatrix);
  writeWhole(path, (sink) => writeGguf(requantize(source, type, plan, onStrip, encode), sink));
  return original.tensors.reduce((bytes, { sizeBytes }) => bytes + sizeBytes, 0);
}

/** Whether a path is the folder of a checkpoint. */
export const isFolder = (path: string): boolean => statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;

function hashFile(path: string): { sizeBytes: number; sha256: string } {
  const source = openFileSource(path);
  try {
    const hash = createHash('sha256');
    const buffer = new Uint8Array(HASH_BYTES);
    for (let at = 0; at < source.sizeBytes; at += HASH_BYTES) {
      const part = buffer.subarray(0, Math.min(HASH_BYTES, source.sizeBytes - at));
      source.readInto(part, at);
      hash.update(part);
    }
    return { sizeBytes: source.sizeBytes, sha256: hash.digest('hex') };
  } finally {
    source.close();
  }
}
