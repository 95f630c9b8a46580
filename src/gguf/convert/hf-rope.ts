import { invalidFile, unsupportedFile } from '../failures.ts';
import type { MetadataEntry } from '../types.ts';
import type { FloatTensor } from './float-tensor.ts';
import { type Json, positive, show, size } from './hf-config.ts';
import { checkSettings, type HfDecoderShape, ropeSettings } from './hf-decoder-shape.ts';

/** The rotation of a checkpoint as GGUF stores it. */
export interface RopeConversion {
  readonly entries: readonly MetadataEntry[];
  readonly tensors: readonly FloatTensor[];
}

const f32 = (key: string, value: number): MetadataEntry => ({ key, type: 'f32', value: Math.fround(value) });
const u32 = (key: string, value: number): MetadataEntry => ({ key, type: 'u32', value });
const string = (key: string, value: string): MetadataEntry => ({ key, type: 'string', value });

/** Reads the base and the scaling of rotations. */
export function convertRope(config: Json, shape: HfDecoderShape, architecture: string): RopeConversion {
  const scaling = ropeSettings(config);
  const prefix = `${architecture}.rope`;
  const base = positive(scaling, 'rope_theta', positive(config, 'rope_theta', 10_000));
  const common = [u32(`${prefix}.dimension_count`, shape.rotaryLength), f32(`${prefix}.freq_base`, base)];
  const kind = scaling['rope_type'] ?? scaling['type'] ?? 'default';
  const convert = typeof kind === 'string' && Object.hasOwn(KINDS, kind) ? KINDS[kind]! : null;
  if (convert === null) {
    const known = Object.keys(KINDS).join(', ');
    unsupportedFile(`config.json: rope scaling ${show(kind)} is not supported (supported: ${known})`);
  }
  const { entries, tensors } = convert({ scaling, config, shape, prefix, base });
  return { entries: [...common, ...entries], tensors };
}

interface RopeInput {
  readonly scaling: Json;
  readonly config: Json;
  readonly shape: HfDecoderShape;
  readonly prefix: string;
  readonly base: number;
}

const KINDS: Readonly<Record<string, (input: RopeInput) => RopeConversion>> = {
  default: () => ({ entries: [], tensors: [] }),
  linear: ({ scaling, prefix }) => ({
    entries: [string(`${prefix}.scaling.type`, 'linear'), f32(`${prefix}.scaling.factor`, positive(scaling, 'factor'))],
    tensors: [],
  }),
  yarn: convertYarn,
  llama3: convertLlama3,
  longrope: convertLongRope,
  su: convertLongRope, // the older name
};

const originalContext = (scaling: Json, config: Json): number =>
  size('original_max_position_embeddings' in scaling ? scaling : config, 'original_max_position_embeddings');

/** Runtimes compute the rest from the factor, with the constants of the paper. */
function convertYarn({ scaling, config, prefix }: RopeInput): RopeConversion {
  const factor = positive(scaling, 'factor');
  const magnitude = factor > 1 ? 1 + 0.1 * Math.log(factor) : 1;
  const attentionFactor = positive(scaling, 'attention_factor', magnitude);
  if (Math.abs(attentionFactor - magnitude) > 1e-6 * magnitude) {
    unsupportedFile(`config.json: attention_factor ${attentionFactor} is not supported (supported: ${magnitude})`);
  }
  checkSettings(scaling, { beta_fast: [32], beta_slow: [1] });
  return {
    entries: [
      string(`${prefix}.scaling.type`, 'yarn'),
      f32(`${prefix}.scaling.factor`, factor),
      u32(`${prefix}.scaling.original_context_length`, originalContext(scaling, config)),
    ],
    tensors: [],
  };
}

/** Divisors of the rotation frequencies: 1 for short waves, `factor` for long ones, a smooth step between. */
function convertLlama3({ scaling, config, shape, base }: RopeInput): RopeConversion {
  const [factor, low] = [positive(scaling, 'factor'), positive(scaling, 'low_freq_factor')];
  const [high, original] = [positive(scaling, 'high_freq_factor'), originalContext(scaling, config)];
  if (high <= low) invalidFile(`config.json: high_freq_factor ${high} is not above low_freq_factor ${low}`);
  const factors = Float32Array.from({ length: shape.rotaryLength / 2 }, (_, i) => {
    const waveLength = 2 * Math.PI * base ** ((2 * i) / shape.rotaryLength);
    const smooth = Math.min(1, Math.max(0, (original / waveLength - low) / (high - low)));
    return 1 / ((1 - smooth) / factor + smooth);
  });
  const tensor = { name: 'rope_freqs.weight', dims: [factors.length] };
  return { entries: [], tensors: [{ ...tensor, readRows: (_firstRow, out) => out.set(factors) }] };
}

/** Divisors for short and for long contexts, and a factor that grows with the stretch. */
function convertLongRope({ scaling, config, shape, prefix }: RopeInput): RopeConversion {
  const original = originalContext(scaling, config);
  const stretch = shape.contextLength / original;
  const magnitude = stretch <= 1 ? 1 : Math.sqrt(1 + Math.log(stretch) / Math.log(original));
  const numPairs = shape.rotaryLength / 2;
  const tensors = (['long', 'short'] as const).map((name): FloatTensor => {
    const factors = scaling[`${name}_factor`];
    const isList = Array.isArray(factors) && factors.every((value) => typeof value === 'number' && value > 0);
    if (!isList || factors.length !== numPairs) {
      const length = Array.isArray(factors) ? factors.length : 'no';
      invalidFile(`config.json: ${name}_factor must have ${numPairs} positive numbers, got ${length}`);
    }
    const values = Float32Array.from(factors as number[]);
    return { name: `rope_factors_${name}.weight`, dims: [numPairs], readRows: (_first, out) => out.set(values) };
  });
  return {
    entries: [
      u32(`${prefix}.scaling.original_context_length`, original),
      f32(`${prefix}.scaling.attn_factor`, positive(scaling, 'attention_factor', magnitude)),
    ],
    tensors,
  };
}
