import type { ByteSource } from '../../core/byte-source.ts';
import type { TensorTypeName } from '../../core/tensor-type.ts';
import { choiceOption, resolveOptions, stringOption } from '../../core/options.ts';
import { invalidFile, unsupportedFile } from '../failures.ts';
import type { GgufToWrite } from '../writer.ts';
import { convertTensor, type FloatTensor, writableTypes } from './float-tensor.ts';
import { llamaEntries, type LlamaShape } from './llama-metadata.ts';
import { readLlama2cTokenizer } from './llama2c-tokenizer.ts';

/** Options of a conversion; every field has a default. */
export interface ConvertOptions {
  /** Element type of the matrices; default Q8_0. */
  type: TensorTypeName;
  /** `general.name`; default the checkpoint's name. */
  name: string;
}

const HEADER_BYTES = 7 * 4;
/** First word ("ak42") of newer, versioned checkpoints. */
const VERSIONED_MAGIC = 0x616b3432;
/** Upper bounds of the header's numbers, so that no product exceeds 2^53. */
const MAX_DIM = 2 ** 17;
const MAX_LAYERS = 1024;
const MAX_VOCAB = 2 ** 22;
const MAX_CONTEXT = 2 ** 24;

/**
 * Converts a llama2.c checkpoint (the unversioned f32 format) and its tokenizer.bin to a Llama GGUF. Both sources must
 * stay open until the result is written. llama2.c rotates adjacent pairs like GGUF, so rows keep their order.
 */
export function convertLlama2c(
  checkpoint: ByteSource,
  tokenizer: ByteSource,
  options?: Partial<ConvertOptions>,
): GgufToWrite {
  const resolved = resolveOptions<ConvertOptions>('llama2.c conversion', options, {
    type: choiceOption('Q8_0', writableTypes),
    name: stringOption(checkpoint.name),
  });
  const { shape, hasClassifier } = readShape(checkpoint, resolved.name);
  const tensors = layOutTensors(checkpoint, shape, hasClassifier);
  return {
    metadata: [...llamaEntries(shape, resolved.type), ...readLlama2cTokenizer(tokenizer, shape.vocabSize)],
    tensors: tensors.map((tensor) => convertTensor(tensor, resolved.type)),
  };
}

function readShape(source: ByteSource, name: string): { shape: LlamaShape; hasClassifier: boolean } {
  if (source.sizeBytes < HEADER_BYTES) {
    invalidFile(`${source.name}: a checkpoint has at least ${HEADER_BYTES} bytes, this one has ${source.sizeBytes}`);
  }
  const bytes = new Uint8Array(HEADER_BYTES);
  source.readInto(bytes, 0);
  const view = new DataView(bytes.buffer);
  if (view.getUint32(0, true) === VERSIONED_MAGIC) {
    unsupportedFile(
      `${source.name}: llama2.c checkpoint version ${view.getInt32(4, true)}; only version 0 is supported`,
    );
  }
  const read = (index: number, what: string, max: number): number => {
    const value = view.getInt32(index * 4, true);
    if (value < 1 || value > max) {
      invalidFile(`${source.name}: ${what} at byte ${index * 4} must be 1 to ${max}, got ${value}`, {
        byteOffset: index * 4,
      });
    }
    return value;
  };
  const signedVocab = view.getInt32(5 * 4, true);
  const hasClassifier = signedVocab < 0;
  if (hasClassifier) view.setInt32(5 * 4, -signedVocab, true);
  const embeddingLength = read(0, 'dim', MAX_DIM);
  const numHeads = read(3, 'n_heads', MAX_DIM);
  const numKvHeads = read(4, 'n_kv_heads', MAX_DIM);
  if (embeddingLength % (2 * numHeads) !== 0 || numHeads % numKvHeads !== 0) {
    invalidFile(
      `${source.name}: dim ${embeddingLength}, ${numHeads} heads and ${numKvHeads} KV heads do not divide evenly`,
    );
  }
  const shape: LlamaShape = {
    name,
    embeddingLength,
    numHeads,
    numKvHeads,
    ffnLength: read(1, 'hidden_dim', MAX_DIM * 8),
    numLayers: read(2, 'n_layers', MAX_LAYERS),
    vocabSize: read(5, 'vocab_size', MAX_VOCAB),
    contextLength: read(6, 'seq_len', MAX_CONTEXT),
    headLength: embeddingLength / numHeads,
    // Both are constants of llama2.c's forward pass, not in its files.
    rmsEpsilon: 1e-5,
    ropeBase: 10_000,
  };
  return { shape, hasClassifier };
}

/** The file has each kind of tensor for all layers; GGUF lists them layer by layer. */
function layOutTensors(source: ByteSource, shape: LlamaShape, hasClassifier: boolean): FloatTensor[] {
  const { embeddingLength: dim, ffnLength, numLayers, vocabSize, headLength } = shape;
  const kvDim = shape.numKvHeads * headLength;
  let offset = HEADER_BYTES;
  const take = (name: string, dims: readonly number[]): FloatTensor => {
    const start = offset;
    offset += 4 * dims.reduce((product, value) => product * value, 1);
    return { name, dims, readRows: (firstRow, out) => readFloats(source, start + firstRow * dims[0]! * 4, out) };
  };
  const takeLayers = (kind: string, dims: readonly number[]): FloatTensor[] =>
    Array.from({ length: numLayers }, (_, layer) => take(`blk.${layer}.${kind}.weight`, dims));

  const embedding = take('token_embd.weight', [dim, vocabSize]);
  const kinds = [
    takeLayers('attn_norm', [dim]),
    takeLayers('attn_q', [dim, dim]),
    takeLayers('attn_k', [dim, kvDim]),
    takeLayers('attn_v', [dim, kvDim]),
    takeLayers('attn_output', [dim, dim]),
    takeLayers('ffn_norm', [dim]),
    takeLayers('ffn_gate', [dim, ffnLength]),
    takeLayers('ffn_down', [ffnLength, dim]),
    takeLayers('ffn_up', [dim, ffnLength]),
  ];
  const norm = take('output_norm.weight', [dim]);
  take('rotation table', [headLength, shape.contextLength]);
  const classifier = hasClassifier ? [take('output.weight', [dim, vocabSize])] : [];
  if (offset !== source.sizeBytes) {
    invalidFile(`${source.name}: the header describes ${offset} bytes, the file has ${source.sizeBytes}`);
  }
  const layers = Array.from({ length: numLayers }, (_, layer) => kinds.map((kind) => kind[layer]!));
  return [embedding, ...layers.flat(), norm, ...classifier];
}

function readFloats(source: ByteSource, offset: number, out: Float32Array): void {
  source.readInto(new Uint8Array(out.buffer, out.byteOffset, out.byteLength), offset);
}
