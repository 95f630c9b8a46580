import { RuvLLMError } from '../core/errors.ts';
import type { GgufFile, Metadata } from '../gguf/index.ts';
import { findFamily, type VisionFamily } from './families.ts';

/** The dimensions of an image encoder and its projector, from the metadata of an mmproj file. */
export interface VisionShape {
  readonly family: VisionFamily;
  /** Width and height of the square that every image is resized to. */
  readonly imageSize: number;
  readonly patchSize: number;
  /** Patches per row and per column. */
  readonly gridSize: number;
  readonly numPatches: number;
  readonly numLayers: number;
  readonly embeddingDim: number;
  readonly feedForwardDim: number;
  readonly numHeads: number;
  readonly headDim: number;
  readonly epsilon: number;
  /** Of each colour, on a scale from 0 to 1. */
  readonly mean: readonly [number, number, number];
  readonly std: readonly [number, number, number];
  /** The projector joins squares of this many patches on a side to one row. */
  readonly scaleFactor: number;
  /** Rows of the language model per image. */
  readonly numTokens: number;
  /** Width of these rows. */
  readonly outputDim: number;
}

// Above any published encoder; attention over all patches grows with the square of their number.
const MAX_IMAGE_SIZE = 2048;
const MAX_PATCHES = 16_384;
const MAX_LAYERS = 256;
const MAX_DIM = 2 ** 16;
const MAX_HEADS = 256;
const MAX_SCALE = 16;

/** Reads and checks the metadata; throws typed errors that name the key. */
export function readVisionShape(gguf: GgufFile): VisionShape {
  const { metadata } = gguf;
  requireVisionFile(metadata);
  requireGelu(metadata);
  const family = findFamily(metadata.string('clip.projector_type', metadata.string('clip.vision.projector_type', '')));
  const count = (key: string, max: number, defaultValue?: number): number =>
    readInteger(metadata, `clip.vision.${key}`, max, defaultValue);
  const imageSize = count('image_size', MAX_IMAGE_SIZE);
  const patchSize = count('patch_size', MAX_IMAGE_SIZE);
  const embeddingDim = count('embedding_length', MAX_DIM);
  const numHeads = count('attention.head_count', MAX_HEADS);
  const scaleFactor = count('projector.scale_factor', MAX_SCALE, 1);
  const gridSize = imageSize / patchSize;
  divides(imageSize, patchSize, 'clip.vision.image_size', 'clip.vision.patch_size');
  divides(gridSize, scaleFactor, 'the patches of a row', 'clip.vision.projector.scale_factor');
  divides(embeddingDim, numHeads, 'clip.vision.embedding_length', 'clip.vision.attention.head_count');
  const numPatches = gridSize ** 2;
  if (numPatches > MAX_PATCHES) {
    throw invalidFile(`${numPatches} patches per image exceed the limit of ${MAX_PATCHES}`, {
      numPatches,
      MAX_PATCHES,
    });
  }
  return {
    family,
    imageSize,
    patchSize,
    gridSize,
    numPatches,
    numLayers: count('block_count', MAX_LAYERS),
    embeddingDim,
    feedForwardDim: count('feed_forward_length', MAX_DIM),
    numHeads,
    headDim: embeddingDim / numHeads,
    epsilon: readEpsilon(metadata),
    mean: readColours(metadata, 'clip.vision.image_mean', () => true, 'a finite number'),
    std: readColours(metadata, 'clip.vision.image_std', (value) => value > 0, 'above 0'),
    scaleFactor,
    numTokens: (gridSize / scaleFactor) ** 2,
    outputDim: gguf.tensor(family.projection).dims[1] ?? 1,
  };
}

function requireVisionFile(metadata: Metadata): void {
  const architecture = metadata.string('general.architecture');
  if (architecture !== 'clip') {
    const message = `a projector has the architecture "clip", this file "${architecture.slice(0, 80)}": pass a language model as the model and its mmproj file as the projector`;
    throw new RuvLLMError('invalid_option', message, { data: { option: 'mmproj', architecture } });
  }
  if (!metadata.boolean('clip.has_vision_encoder', false)) {
    throw new RuvLLMError(
      'unsupported',
      'this projector has no image encoder (metadata key "clip.has_vision_encoder")',
      {
        data: { key: 'clip.has_vision_encoder' },
      },
    );
  }
}

function readInteger(metadata: Metadata, key: string, max: number, defaultValue?: number): number {
  const value = metadata.number(key, defaultValue);
  if (Number.isSafeInteger(value) && value >= 1 && value <= max) return value;
  throw invalidFile(`metadata key "${key}" is ${value}, must be 1 to ${max}`, { key, value });
}

function divides(whole: number, part: number, wholeName: string, partName: string): void {
  if (Number.isInteger(whole / part)) return;
  throw invalidFile(`${wholeName} is ${whole}, not a multiple of ${partName}, ${part}`, { whole, part });
}

function readEpsilon(metadata: Metadata): number {
  const key = 'clip.vision.attention.layer_norm_epsilon';
  const value = metadata.number(key);
  if (value > 0 && value < 1) return value;
  throw invalidFile(`metadata key "${key}" is ${value}, must be between 0 and 1`, { key, value });
}

/** Without either key llama.cpp uses a third formula, x · sigmoid(1.702 · x), which no file of a supported family has. */
function requireGelu(metadata: Metadata): void {
  if (metadata.boolean('clip.use_gelu', false)) return;
  throw new RuvLLMError('unsupported', 'this projector does not set "clip.use_gelu": its activation is not supported', {
    data: { key: 'clip.use_gelu' },
  });
}

function readColours(
  metadata: Metadata,
  key: string,
  isValid: (value: number) => boolean,
  rule: string,
): readonly [number, number, number] {
  const values = Array.from(metadata.numbers(key));
  const [red, green, blue] = values;
  if (values.length === 3 && values.every((value) => Number.isFinite(value) && isValid(value))) {
    return [red!, green!, blue!];
  }
  throw invalidFile(`metadata key "${key}" is [${values.slice(0, 8).join(', ')}], must have 3 values, each ${rule}`, {
    key,
  });
}

function invalidFile(message: string, data: Record<string, string | number>): RuvLLMError {
  return new RuvLLMError('invalid_model_file', message, { data });
}
