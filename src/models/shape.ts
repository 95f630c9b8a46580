import { RuvLLMError } from '../core/errors.ts';
import type { GgufFile, Metadata } from '../gguf/index.ts';
import { readExpertShape } from './expert-shape.ts';
import { largestOf, readLayerSizes } from './layer-sizes.ts';
import { readLatentShape } from './latent-shape.ts';
import { readCount } from './read-count.ts';
import type { DecoderShape } from './types.ts';

// Above any published decoder, far below an overflow; the tensor table limits the other sizes.
const MAX_LAYERS = 1024;
const MAX_HEADS = 1024;
const MAX_HEAD_DIM = 1024;
const MAX_DIM = 2 ** 20;
const MAX_CONTEXT = 2 ** 27;

/** Reads the dimensions that every architecture has, with the defaults of the format. */
export function readShape(gguf: GgufFile): DecoderShape {
  const architecture = gguf.metadata.string('general.architecture');
  const count = (key: string, max: number, defaultValue?: number): number =>
    readCount(gguf.metadata, `${architecture}.${key}`, max, defaultValue);
  const numLayers = readLayers(gguf.metadata, architecture);
  const embeddingDim = count('embedding_length', MAX_DIM);
  const numHeads = count('attention.head_count', MAX_HEADS);
  const experts = readExpertShape(gguf, numLayers);
  const layerSizes = readLayerSizes(
    gguf,
    { architecture, numLayers, numHeads },
    {
      maxHeads: MAX_HEADS,
      maxHeadDim: MAX_HEAD_DIM,
      maxDim: MAX_DIM,
      defaultHeadDim: Math.floor(embeddingDim / numHeads),
      defaultFeedForwardDim: experts?.feedForwardDim,
    },
  );
  const { numKvHeads: fileKvHeads, recurrentLayers } =
    layerSizes === null
      ? readKvHeads(gguf, architecture, numLayers, numHeads)
      : { numKvHeads: largestOf(layerSizes, (size) => size.numKvHeads), recurrentLayers: [] };
  const latent = readLatentShape(gguf.metadata, architecture);
  const numKvHeads = latent === null ? fileKvHeads : 1;
  const defaultHeadDim = latent === null ? Math.floor(embeddingDim / numHeads) : latent.rank + latent.rotaryDim;
  const sizeOf = (key: string): number => (latent === null ? count(key, MAX_HEAD_DIM, defaultHeadDim) : defaultHeadDim);
  const [keyDim, valueDim] = [sizeOf('attention.key_length'), sizeOf('attention.value_length')];
  const headDim = layerSizes === null ? keyDim : largestOf(layerSizes, (size) => size.headDim);
  if (keyDim !== valueDim) {
    throw new RuvLLMError(
      'unsupported',
      `${architecture}: a key size of ${keyDim} with a value size of ${valueDim} is not supported`,
      {
        data: { keyLength: keyDim, valueLength: valueDim },
      },
    );
  }
  if (numHeads % numKvHeads !== 0 || headDim % 2 !== 0) {
    throw new RuvLLMError(
      'invalid_model_file',
      `${architecture}: ${numHeads} heads of ${headDim} over ${numKvHeads} key/value heads do not divide evenly`,
      { data: { numHeads, numKvHeads, headDim } },
    );
  }
  const feedForwardDim =
    layerSizes === null
      ? count('feed_forward_length', MAX_DIM, experts?.feedForwardDim)
      : largestOf(layerSizes, (size) => size.feedForwardDim);
  return {
    architecture,
    isCausal: gguf.metadata.boolean(`${architecture}.attention.causal`, true),
    numLayers,
    numKvLayers: numLayers - recurrentLayers.length - readSharedLayers(gguf.metadata, architecture, numLayers),
    ...(recurrentLayers.length === 0 ? {} : { recurrentLayers }),
    embeddingDim,
    numHeads,
    numKvHeads,
    headDim,
    feedForwardDim,
    ...(layerSizes === null ? {} : { layerSizes }),
    isGated: isGated(gguf, feedForwardDim),
    // Tokens index the table; the tokenizer may have fewer than its padded size.
    vocabSize: gguf.tensor('token_embd.weight').dims[1] ?? 1,
    contextLength: count('context_length', MAX_CONTEXT),
    ...(experts === null ? {} : { experts }),
    ...(latent === null ? {} : { latent }),
    ...(hasQueryGates(gguf, numHeads * headDim) ? { hasQueryGates: true } : {}),
  };
}

/** Files may have layers that only guess further tokens, after the others. They are not used. */
function readLayers(metadata: Metadata, architecture: string): number {
  const numLayers = readCount(metadata, `${architecture}.block_count`, MAX_LAYERS);
  const key = `${architecture}.nextn_predict_layers`;
  if (metadata.number(key, 0) === 0) return numLayers;
  return numLayers - readCount(metadata, key, numLayers - 1);
}

/** Last layers that use the keys and values of earlier ones. Old files of Gemma 3n have no key: all but 20 layers do. */
function readSharedLayers(metadata: Metadata, architecture: string, numLayers: number): number {
  const key = `${architecture}.attention.shared_kv_layers`;
  const count = metadata.number(key, architecture === 'gemma3n' ? Math.max(0, numLayers - 20) : 0);
  if (Number.isSafeInteger(count) && count >= 0 && count < numLayers) return count;
  throw new RuvLLMError(
    'invalid_model_file',
    `metadata key "${key}" is ${count}, must be from 0 to ${numLayers - 1}, because the model has ${numLayers} layers`,
    { data: { key, value: count, numLayers } },
  );
}

/** The heads of layers with attention. Files with recurrent layers list 0 for those, or say which layers have attention. */
function readKvHeads(gguf: GgufFile, architecture: string, numLayers: number, numHeads: number): KvHeads {
  const { metadata } = gguf;
  const interval = readAttentionInterval(gguf, architecture, numLayers);
  if (interval !== null) {
    const numKvHeads = readCount(metadata, `${architecture}.attention.head_count_kv`, MAX_HEADS, numHeads);
    const layers = Array.from({ length: numLayers }, (_, layer) => layer);
    return { numKvHeads, recurrentLayers: layers.filter((layer) => (layer + 1) % interval !== 0) };
  }
  const key = `${architecture}.attention.head_count_kv`;
  const listed = ArrayBuffer.isView(metadata.get(key)) ? Array.from(metadata.numbers(key)) : [];
  if (!listed.includes(0)) return { numKvHeads: readCount(metadata, key, MAX_HEADS, numHeads), recurrentLayers: [] };
  const counts = listed.filter((count) => count !== 0);
  const numKvHeads = counts[0] ?? 0;
  const isEven = counts.every((count) => count === numKvHeads);
  if (listed.length === numLayers && isEven && Number.isSafeInteger(numKvHeads) && numKvHeads >= 0 && numKvHeads <= MAX_HEADS) return { numKvHeads, recurrentLayers: listed.flatMap((count, layer) => (count === 0 ? [layer] : [])) }; // prettier-ignore
  throw new RuvLLMError(
    'invalid_model_file',
    `metadata key "${key}" lists ${listed.length} counts (${listed.join(', ')}) for ${numLayers} layers: each must be 0 or the same number from 1 to ${MAX_HEADS}`,
    { data: { key, numListed: listed.length, numLayers } },
  );
}

/** Every n-th layer has attention, the others are delta nets; null: the file has none. Old files have no key for n. */
function readAttentionInterval(
  { metadata, tensors }: GgufFile,
  architecture: string,
  numLayers: number,
): number | null {
  const key = `${architecture}.full_attention_interval`;
  if (metadata.get(key) !== undefined) return readCount(metadata, key, numLayers);
  return tensors.has('blk.0.ssm_ba.weight') || tensors.has('blk.0.ssm_beta.weight') ? 4 : null;
}

interface KvHeads {
  readonly numKvHeads: number;
  readonly recurrentLayers: readonly number[];
}

/** Whether the rows of queries are followed by those of gates. */
const hasQueryGates = ({ tensors }: GgufFile, numRows: number): boolean =>
  [...tensors.values()].some(({ name, dims }) => name.endsWith('.attn_q.weight') && dims[1] === 2 * numRows);

/** A file may also stack gate and up in one matrix of twice the rows. */
function isGated({ tensors }: GgufFile, feedForwardDim: number): boolean {
  return tensors.has('blk.0.ffn_gate.weight') || tensors.get('blk.0.ffn_up.weight')?.dims[1] !== feedForwardDim;
}
