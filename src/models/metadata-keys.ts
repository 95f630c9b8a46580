import { RuvLLMError } from '../core/errors.ts';
import type { GgufFile } from '../gguf/index.ts';
import type { DecoderShape } from './types.ts';

/** A file whose architecture and number of layers are known. */
interface ModelFile {
  readonly gguf: GgufFile;
  readonly shape: Pick<DecoderShape, 'architecture' | 'numLayers'>;
}

// A model may have fewer layers than a group; the limit only rejects nonsense.
const MAX_GROUP_SIZE = 1024;
/** Above any published factor. */
const MAX_FACTOR = 1e6;

/** A number under the architecture's prefix. */
export function readNumber({ gguf, shape }: ModelFile, key: string, defaultValue?: number): number {
  return gguf.metadata.number(`${shape.architecture}.${key}`, defaultValue);
}

export function readEpsilon(file: ModelFile): number {
  return checked(file, 'attention.layer_norm_rms_epsilon', readNumber(file, 'attention.layer_norm_rms_epsilon'), 1);
}

/** For norms that also subtract the mean. */
export function readLayerNormEpsilon(file: ModelFile): number {
  const key = 'attention.layer_norm_epsilon';
  return checked(file, key, readNumber(file, key), 1);
}

/** Tokens that a windowed layer sees; 0: no window. Without a default the key is required. */
export function readWindow(file: ModelFile, defaultValue?: number): number {
  return checked(
    file,
    'attention.sliding_window',
    readNumber(file, 'attention.sliding_window', defaultValue),
    2 ** 31 - 1,
  );
}

/** A factor under the architecture's prefix; `defaultValue` also where the file has 0. Without one the key is required. */
export function readFactor(file: ModelFile, key: string, defaultValue?: number): number {
  const value = readNumber(file, key, defaultValue);
  if (value === 0 && defaultValue !== undefined) return defaultValue;
  if (value > 0 && value <= MAX_FACTOR) return value;
  throw new RuvLLMError(
    'invalid_model_file',
    `${file.shape.architecture}.${key} is ${value}, must be above 0 and at most ${MAX_FACTOR}`,
    { data: { key, value, max: MAX_FACTOR } },
  );
}

/** A soft cap on scores or logits; 0 is off. */
export function readSoftcap(file: ModelFile, key: string, defaultValue: number): number {
  return checked(file, key, readNumber(file, key, defaultValue), 1e6);
}

/**
 * Which layers have a window. The file may list them; otherwise all layers of a group of `groupSize` have one except
 * the last (group size 0: all layers). Without a default the key is required.
 */
export function readWindowedLayers(file: ModelFile, defaultGroupSize?: number): readonly boolean[] {
  const { numLayers, architecture } = file.shape;
  const key = 'attention.sliding_window_pattern';
  const listed = file.gguf.metadata.get(`${architecture}.${key}`);
  if (typeof listed === 'object') {
    const layers = Array.from(listed as ArrayLike<unknown>, Boolean);
    if (layers.length >= numLayers) return layers.slice(0, numLayers);
    throw new RuvLLMError(
      'invalid_model_file',
      `${architecture}.${key} lists ${layers.length} layers, the model has ${numLayers}`,
      {
        data: { numListed: layers.length, numLayers },
      },
    );
  }
  const groupSize = checked(file, key, readNumber(file, key, defaultGroupSize), MAX_GROUP_SIZE);
  return Array.from({ length: numLayers }, (_, layer) => groupSize === 0 || layer % groupSize < groupSize - 1);
}

function checked({ shape }: ModelFile, key: string, value: number, max: number): number {
  if (value >= 0 && value <= max) return value;
  throw new RuvLLMError('invalid_model_file', `${shape.architecture}.${key} is ${value}, must be from 0 to ${max}`, {
    data: { key, value, max },
  });
}
