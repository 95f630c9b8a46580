import { createHash } from 'node:crypto';
import { RuvLLMError } from '../../core/errors.ts';
import type { KlResult } from '../../core/kl-meter.ts';
import type { ImportanceMatrix } from '../../gguf/imatrix/imatrix.ts';
import { scaleColumns } from '../../gguf/requantize/awq.ts';
import { checkImatrix, importanceEncoder, plainEncoder, type RowEncoder } from '../../gguf/requantize/encode-rows.ts';
import type { MixName } from '../../gguf/requantize/mixes.ts';
import { type QuantizeSource, sourceFromConversion, sourceFromGguf } from '../../gguf/requantize/quantize-source.ts';
import { planRequantization, requantize, type RequantizedTensor } from '../../gguf/requantize/requantize.ts';
import { writeGguf } from '../../gguf/writer.ts';
import { writeWhole } from '../../platform/node/files/file-sink.ts';
import { openFileSource } from '../../platform/node/files/file-source.ts';
import { openModelFile } from '../../platform/node/files/open-model-file.ts';
import { openConversion } from '../convert-folder.ts';
import { checkGptqPlan, type GptqReport } from './gptq-report.ts';
import { PASS_BYTES, roundWithGptq } from './gptq-rows.ts';
import { createRunnableSource, isFolder, type RunnableSource } from './runnable-source.ts';
import { compareOnText, type LogitOptions } from './text-logits.ts';
import { textTokens, type TextModelOptions } from './text-model.ts';

/** How weights are rounded: each for itself, after activation-aware scaling, or column by column with corrections. */
export type QuantizeMethod = 'round' | 'awq' | 'gptq';

/** The text whose inputs `gptq` measures. */
export interface CalibrationText extends TextModelOptions {
  readonly text: string;
  /** Most tokens of the text to use. */
  readonly maxTokens: number;
}

/** A file to quantize. */
export interface QuantizeOptions {
  /** A GGUF file, or the folder of a Hugging Face checkpoint. */
  readonly sourcePath: string;
  readonly path: string;
  readonly type: MixName;
  /** Weights of errors; null: all columns are equally important. */
  readonly imatrix: ImportanceMatrix | null;
  /** `awq` scales columns before rounding and requires an importance matrix; `gptq` requires a calibration text. */
  readonly method: QuantizeMethod;
  /** For `gptq` only. */
  readonly calibration: CalibrationText | null;
  /** Text to compare the files on, and how; null: not compared. */
  readonly comparison: ({ readonly text: string } & LogitOptions) | null;
  readonly onProgress?: (progress: QuantizeProgress) => void;
}

/** After each strip of a tensor, in bytes of the source; null while a text runs. */
export interface QuantizeProgress {
  readonly label: string;
  readonly doneBytes: number;
  readonly totalBytes: number | null;
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
  /** Of `gptq` only. */
  readonly gptq: GptqReport | null;
  /** Source against result; null without a text. */
  readonly divergence: KlResult | null;
}

const HASH_BYTES = 8 << 20;

/** Writes a model in other tensor types, reads it back, and compares both on a text. */
export async function quantizeFile(options: QuantizeOptions): Promise<QuantizeResult> {
  const runnable = createRunnableSource(options.sourcePath, options.path);
  try {
    return await quantizeSource(options, runnable);
  } finally {
    runnable.dispose();
  }
}

async function quantizeSource(options: QuantizeOptions, runnable: RunnableSource): Promise<QuantizeResult> {
  const { sourcePath, path, type, comparison } = options;
  // A text that is too short is refused before the work.
  if (comparison !== null && !isFolder(sourcePath)) textTokens(sourcePath, comparison.text, comparison.maxTokens);
  const { sourceBytes, gptq } = await writeQuantized(options, runnable);
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
  const bitsPerWeight = (8 * numBytes) / numValues;
  const divergence =
    comparison === null ? null : await compareOnText(runnable.path(), path, comparison.text, comparison);
  return { path, sourceBytes, sizeBytes, sha256, types, bitsPerWeight, gptq, divergence };
}

interface Written {
  /** Of the source's tensors. */
  readonly sourceBytes: number;
  readonly gptq: GptqReport | null;
}

async function writeQuantized(options: QuantizeOptions, runnable: RunnableSource): Promise<Written> {
  const { sourcePath } = options;
  if (isFolder(sourcePath)) {
    const { file, close } = openConversion({ folder: sourcePath, type: 'F32' });
    try {
      return await writeSource(options, sourceFromConversion(file), runnable);
    } finally {
      close();
    }
  }
  const gguf = openModelFile(sourcePath);
  try {
    return await writeSource(options, sourceFromGguf(gguf), runnable);
  } finally {
    gguf.source.close();
  }
}

async function writeSource(
  options: QuantizeOptions,
  original: QuantizeSource,
  runnable: RunnableSource,
): Promise<Written> {
  const { type, method } = options;
  if (options.imatrix !== null) checkImatrix(original.tensors, options.imatrix);
  const { source, imatrix } =
    method === 'awq'
      ? scaleColumns(original, planRequantization(original, type), options.imatrix!)
      : { source: original, imatrix: options.imatrix };
  const plan = planRequantization(source, type);
  const sourceBytes = original.tensors.reduce((bytes, { sizeBytes }) => bytes + sizeBytes, 0);
  if (method === 'gptq') return { sourceBytes, gptq: await writeWithGptq(options, source, plan, runnable) };
  writePlan(options, source, plan, imatrix === null ? plainEncoder : importanceEncoder(imatrix));
  return { sourceBytes, gptq: null };
}

/** Longer texts than the model was trained for would show inputs that it never has. */
const CHUNK_TOKENS = 512;

async function writeWithGptq(
  options: QuantizeOptions,
  source: QuantizeSource,
  plan: readonly RequantizedTensor[],
  runnable: RunnableSource,
): Promise<GptqReport> {
  const { path, onProgress } = options;
  const calibration = options.calibration!;
  checkGptqPlan(plan);
  const context = source.metadata.number(
    `${source.metadata.string('general.architecture')}.context_length`,
    CHUNK_TOKENS,
  );
  const totalBytes = plan.reduce((sum, { tensor }) => sum + tensor.sizeBytes, 0);
  let doneBytes = 0;
  const rows = await roundWithGptq({
    modelPath: runnable.path(),
    path,
    plan,
    passBytes: PASS_BYTES,
    calibration: {
      ...calibration,
      chunkTokens: Math.min(CHUNK_TOKENS, context),
      onProgress: (doneTokens, totalTokens) =>
        onProgress?.({ label: `calibration: ${doneTokens} of ${totalTokens} tokens`, doneBytes: 0, totalBytes: null }),
    },
    onRows: ({ tensor, type }, numRows) => {
      doneBytes += (numRows * tensor.dims[0]! * tensor.sizeBytes) / tensor.numElements;
      onProgress?.({ label: `${tensor.name} → ${type}`, doneBytes, totalBytes });
    },
  });
  try {
    writePlan({ ...options, onProgress: () => {} }, source, plan, rows.encode);
    return rows.report;
  } finally {
    rows.dispose();
  }
}

function writePlan(
  { path, type, onProgress }: Pick<QuantizeOptions, 'path' | 'type' | 'onProgress'>,
  source: QuantizeSource,
  plan: readonly RequantizedTensor[],
  encode: RowEncoder,
): void {
  const totalBytes = plan.reduce((sum, { tensor }) => sum + tensor.sizeBytes, 0);
  const before = new Map<RequantizedTensor, number>();
  let sum = 0;
  for (const entry of plan) {
    before.set(entry, sum);
    sum += entry.tensor.sizeBytes;
  }
  const onStrip = (entry: RequantizedTensor, doneBytes: number): void =>
    onProgress?.({
      label: `${entry.tensor.name} → ${entry.type}`,
      doneBytes: before.get(entry)! + doneBytes,
      totalBytes,
    });
  writeWhole(path, (sink) => writeGguf(requantize(source, type, plan, onStrip, encode), sink));
}

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
