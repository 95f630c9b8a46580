import { invalidFile, unsupportedFile } from '../failures.ts';
import type { MetadataEntry } from '../types.ts';
import type { FloatTensor } from './float-tensor.ts';
import { isJsonObject, type Json, positive, show, size } from './hf-config.ts';
import type { HfDecoderShape } from './hf-decoder-shape.ts';

/** The rotation of a checkpoint as GGUF stores it. */
export interface RopeConversion {
  readonly entries: readonly MetadataEntry[];
  readonly tensors: readonly FloatTensor[];
}

const f32 = (key: string, value: number): MetadataEntry => ({ key, type: 'f32', value: Math.fround(value) });
const u32 = (key: string, value: number): MetadataEntry => ({ key, type: 'u32', value });
const string = (key: string, value: string): MetadataEntry => ({ key, type: 'string', value });

/** Reads `rope_theta` and `rope_scaling`, or `rope_parameters` of newer files. */
export function convertRope(config: Json, shape: HfDecoderShape, architecture: string): RopeConversion {
  const scaling = ropeSettings(config);
  const prefix = `${architecture}.rope`;
  const base = [
    u32(`${prefix}.dimension_count`, shape.rotaryLength),
    f32(`${prefix}.freq_base`, positive(scaling, 'rope_theta', positive(config, 'rope_theta', 10_000))),
  ];
  const kind = scaling['rope_type'] ?? scaling['type'] ?? 'default';
  const convert = Object.hasOwn(KINDS, String(kind)) ? KINDS[String(kind)]! : null;
  if (convert === null) {
    const known = Object.keys(KINDS).join(', ');
    unsupportedFile(`config.json: rope scaling ${show(kind)} is not supported (supported: ${known})`);
  }
  const { entries, tensors } = convert({ scaling, config, shape, prefix });
  return { entries: [...base, ...entries], tensors };
}

function ropeSettings(config: Json): Json {
  const settings = config['rope_parameters'] ?? config['rope_scaling'] ?? {};
  if (!isJsonObject(settings)) invalidFile('config.json: rope_scaling is not an object');
  if (Object.values(settings).some(isJsonObject)) {
    unsupportedFile('config.json: rope_parameters for each kind of layer are not supported');
  }
  return settings;
}

interface RopeInput {
  readonly scaling: Json;
  readonly config: Json;
  readonly shape: HfDecoderShape;
  readonly prefix: string;
}

const KINDS: Readonly<Record<string, (input: RopeInput) => RopeConversion>> = {
  default: () => ({ entries: [], tensors: [] }),
  linear: ({ scaling, prefix }) => ({
    entries: [string(`${prefix}.scaling.type`, 'linear'), f32(`${prefix}.scaling.factor`, positive(scaling, 'factor'))],
    tensors: [],
  }),
  yarn: ({ scaling, config, prefix }) => ({
    entries: [
      string(`${prefix}.scaling.type`, 'yarn'),
      f32(`${prefix}.scaling.factor`, positive(scaling, 'factor')),
      u32(`${prefix}.scaling.original_context_length`, originalContext(scaling, config)),
    ],
    tensors: [],
  }),
  longrope: convertLongRope,
  su: convertLongRope, // the older name
};

const originalContext = (scaling: Json, config: Json): number =>
  size('original_max_position_embeddings' in scaling ? scaling : config, 'original_max_position_embeddings');

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
