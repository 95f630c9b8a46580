import { RuvLLMError } from '../core/errors.ts';

/** How a family of models joins image rows to a prompt. */
export interface VisionFamily {
  /** `clip.projector_type` of its files. */
  readonly name: string;
  /** The tensor that maps joined patches to rows of the language model. */
  readonly projection: string;
  /** Text before and after the rows of an image; spellings of special tokens. */
  readonly before: string;
  readonly after: string;
  /** The token whose positions the rows take. */
  readonly placeholder: string;
}

/** SmolVLM and Idefics 3: a SigLIP encoder, squares of patches joined to one row, one matrix. */
const idefics3: VisionFamily = {
  name: 'idefics3',
  projection: 'mm.model.fc.weight',
  before: '<fake_token_around_image><global-img>',
  after: '<fake_token_around_image>',
  placeholder: '<image>',
};

const FAMILIES: ReadonlyMap<string, VisionFamily> = new Map([idefics3].map((family) => [family.name, family]));

/** The family of a projector, or `unsupported` with its name and the supported ones. */
export function findFamily(name: string): VisionFamily {
  const family = FAMILIES.get(name);
  if (family !== undefined) return family;
  const supported = [...FAMILIES.keys()];
  const named = name === '' ? 'names no type ("clip.projector_type")' : `is of type "${name.slice(0, 80)}"`;
  throw new RuvLLMError('unsupported', `the projector ${named}; supported: ${supported.join(', ')}`, {
    data: { projectorType: name.slice(0, 80), supported },
  });
}
