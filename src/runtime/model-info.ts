import { displayNameOf } from '../core/display-name.ts';
import type { TensorTypeName } from '../core/tensor-type.ts';
import type { ModelReport } from '../engine/protocol.ts';
import type { Pooling } from '../engine/pooling.ts';
import type { GgufFile, Metadata } from '../gguf/types.ts';
import type { SamplingDefaults } from '../sampling/generate-params.ts';
import type { LayerSplitReport } from '../models/types.ts';
import { type ModelSampling, readSampling } from './default-sampling.ts';
import { type ModelSize, modelSizeOf } from './model-size.ts';

/** Facts about a loaded model. */
export interface ModelInfo {
  /** The name in the file; null: none. */
  readonly name: string | null;
  /** A short name for people, from the metadata and the file name: `TinyLlama 1.1B Chat IQ2_XXS`. */
  readonly displayName: string;
  readonly path: string;
  readonly architecture: string;
  readonly numParameters: number;
  readonly size: ModelSize;
  /** The tensor type of most weights. */
  readonly quantization: TensorTypeName;
  /** False for encoders, which only embed. */
  readonly canGenerate: boolean;
  /** Whether it is a cross-encoder: `rerank` works without the method `embeddings`. */
  readonly canRerank: boolean;
  /** Whether prompts can have images: it was loaded with a projector. */
  readonly canSeeImages: boolean;
  /** Number of values of an embedding. */
  readonly embeddingDim: number;
  /** The default pooling of `embed`. */
  readonly pooling: Pooling;
  readonly vocabSize: number;
  /** The context length of the training. */
  readonly contextLength: number;
  /** The context length as loaded. */
  readonly maxContext: number;
  /** The source of the chat template: `file`, `custom` for the option `chatTemplate`, or the name of a built-in one. */
  readonly chatTemplate: string;
  readonly fileBytes: number;
  /** Sampling of calls that set none of it. */
  readonly sampling: ModelSampling;
  readonly memory: {
    readonly weightBytes: number;
    readonly kvBytes: number;
    readonly activationBytes: number;
    readonly totalBytes: number;
    /** The layers and bytes of each side; only if kernels of a GPU were chosen. */
    readonly split?: LayerSplitReport;
  };
  /** The packing of older KV pages and the reason; precision null: not packed. */
  readonly kvPacking: ModelReport['kvPacking'];
  /** The kernel pack in use. */
  readonly kernels: string;
  readonly numThreads: number;
  readonly loadMs: number;
}

/** By `pooling_type` in the file; other values mean unknown. */
const POOLING_TYPES: ReadonlyMap<number, Pooling> = new Map([
  [1, 'mean'],
  [2, 'cls'],
  [3, 'last'],
]);

function readPooling(metadata: Metadata): Pooling {
  const type = metadata.number(`${metadata.string('general.architecture')}.pooling_type`, 0);
  return POOLING_TYPES.get(type) ?? 'mean';
}

/** The facts from the file, read before it is closed; `sampling`: defaults that replace those of the file. */
export function describeFile(
  gguf: GgufFile,
  sampling: Partial<SamplingDefaults> | null = null,
): Pick<ModelInfo, 'name' | 'numParameters' | 'quantization' | 'fileBytes' | 'pooling' | 'sampling'> {
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
    sampling: readSampling(gguf.metadata, (8 * gguf.source.sizeBytes) / numParameters, sampling),
  };
}

export function createModelInfo(
  file: ReturnType<typeof describeFile>,
  report: ModelReport,
  other: Pick<ModelInfo, 'path' | 'chatTemplate' | 'canRerank' | 'canSeeImages' | 'loadMs'>,
): ModelInfo {
  const { shape } = report;
  return Object.freeze({
    ...file,
    ...other,
    displayName: displayNameOf({
      name: file.name,
      file: other.path,
      numParameters: file.numParameters,
      quantization: file.quantization,
      hasChatTemplate: other.chatTemplate === 'file' || other.chatTemplate === 'custom',
    }),
    architecture: shape.architecture,
    size: modelSizeOf(file.numParameters),
    canGenerate: shape.isCausal,
    embeddingDim: shape.embeddingDim,
    vocabSize: shape.vocabSize,
    contextLength: shape.contextLength,
    ...engineInfo(report),
  });
}

/** The part that depends on the kernels, which change if a GPU is lost. */
export function engineInfo({ memory, maxContext, kvPacking, kernels, numThreads }: ModelReport) {
  return {
    maxContext,
    memory: { ...memory, totalBytes: memory.weightBytes + memory.kvBytes + memory.activationBytes },
    kvPacking,
    kernels,
    numThreads,
  };
}
