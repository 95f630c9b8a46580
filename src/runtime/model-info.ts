import type { TensorTypeName } from '../core/tensor-type.ts';
import type { ModelReport } from '../engine/protocol.ts';
import { type Pooling } from '../engine/pooling.ts';
import type { GgufFile, Metadata } from '../gguf/types.ts';
import { type ModelSize, modelSizeOf } from './model-size.ts';

/** What is known of a loaded model. */
export interface ModelInfo {
  /** As the file names itself; null when it does not. */
  readonly name: string | null;
  readonly path: string;
  readonly architecture: string;
  readonly numParameters: number;
  readonly size: ModelSize;
  /** The tensor type most of the weights have. */
  readonly quantization: TensorTypeName;
  /** False: an encoder, which only embeds. */
  readonly canGenerate: boolean;
  /** Values of the vectors that `embed` makes. */
  readonly embeddingDim: number;
  /** What `embed` makes of the tokens' vectors unless told otherwise. */
  readonly pooling: Pooling;
  readonly vocabSize: number;
  /** The context the model was trained for. */
  readonly contextLength: number;
  /** Most tokens of one sequence as it was loaded. */
  readonly maxContext: number;
  /** Where the chat template comes from: `file` or the name of a built-in. */
  readonly chatTemplate: string;
  readonly fileBytes: number;
  readonly memory: {
    readonly weightBytes: number;
    readonly kvBytes: number;
    readonly activationBytes: number;
    readonly totalBytes: number;
  };
  /** How older KV pages are rounded, and why so; the precision null: not at all. */
  readonly kvPacking: ModelReport['kvPacking'];
  /** Name of the kernel pack that computes. */
  readonly kernels: string;
  readonly numThreads: number;
  readonly loadMs: number;
}

/** By the numbers of `pooling_type`; others mean that the file does not say. */
const POOLING_TYPES: ReadonlyMap<number, Pooling> = new Map([
  [1, 'mean'],
  [2, 'cls'],
  [3, 'last'],
]);

function readPooling(metadata: Metadata): Pooling {
  const type = metadata.number(`${metadata.string('general.architecture')}.pooling_type`, 0);
  return POOLING_TYPES.get(type) ?? 'mean';
}

/** The facts that only the file knows; taken before it is closed. */
export function describeFile(
  gguf: GgufFile,
): Pick<ModelInfo, 'name' | 'numParameters' | 'quantization' | 'fileBytes' | 'pooling'> {
  const elementsByType = new Map<TensorTypeName, number>();
  let numParameters = 0;
  for (const { type, numElements } of gguf.tensors.values()) {
    numParameters += numElements;
    elementsByType.set(type, (elementsByType.get(type) ?? 0) + numElements);
  }
  const [most] = [...elementsByType].sort((a, b) => b[1] - a[1]);
  return {
    name: gguf.metadata.string('general.name', '') || null,
    numParameters,
    quantization: most?.[0] ?? 'F32',
    fileBytes: gguf.source.sizeBytes,
    pooling: readPooling(gguf.metadata),
  };
}

/** Joins what the file says with what the engine reports. */
export function createModelInfo(
  file: ReturnType<typeof describeFile>,
  report: ModelReport,
  other: Pick<ModelInfo, 'path' | 'chatTemplate' | 'loadMs'>,
): ModelInfo {
  const { shape, memory } = report;
  return Object.freeze({
    ...file,
    ...other,
    architecture: shape.architecture,
    size: modelSizeOf(file.numParameters),
    canGenerate: shape.isCausal,
    embeddingDim: shape.embeddingDim,
    vocabSize: shape.vocabSize,
    contextLength: shape.contextLength,
    maxContext: report.maxContext,
    memory: { ...memory, totalBytes: memory.weightBytes + memory.kvBytes + memory.activationBytes },
    kvPacking: report.kvPacking,
    kernels: report.kernels,
    numThreads: report.numThreads,
  });
}
