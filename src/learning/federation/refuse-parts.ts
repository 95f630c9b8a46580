import { RuvLLMError } from '../../core/errors.ts';
import type { AdapterEvidence } from './adapter-evidence.ts';
import type { BundleContents } from './contents.ts';

/** The node that receives a bundle. */
export interface Receiver {
  /** Space of its patterns; null: unknown, so patterns of any are kept and those of another are never compared. */
  readonly space: string | null;
  /** The file of a model by name; null: it is not loaded, so its adapters are checked when they are merged. */
  pathOf(model: string): string | null;
}

/** A part of a bundle that this node cannot use. */
export interface RefusedPart {
  readonly part: string;
  readonly reason: string;
}

export const otherBase = (peer: string, { model, base }: Pick<AdapterEvidence, 'model' | 'base'>, own: string): RuvLLMError =>
  new RuvLLMError('conflict', `${peer} trained its adapter of "${model}" for the model file ${base}, this node has ${own}; use the same file on both nodes`, { data: { model, theirs: base, own } }); // prettier-ignore

const otherSpace = (theirs: string, own: string): RuvLLMError =>
  new RuvLLMError('conflict', `the patterns are vectors of the embedder ${theirs}, this node has ${own}; use the same embedder on both nodes`, { data: { theirs, own } }); // prettier-ignore

/** Leaves out patterns of another embedder and adapters of another model file; throws if nothing else is in the bundle. */
export function refuseParts(
  { patterns, adapters, ...kept }: BundleContents,
  { space, pathOf }: Receiver,
  hashModel: (path: string) => string,
): { readonly kept: BundleContents; readonly refused: readonly RefusedPart[] } {
  const errors: { readonly part: string; readonly error: RuvLLMError }[] = [];
  if (patterns !== undefined && space !== null && patterns.space !== space)
    errors.push({ part: 'patterns', error: otherSpace(patterns.space, space) });
  else if (patterns !== undefined) kept = { ...kept, patterns } as BundleContents;
  const fitting = adapters?.filter((one) => {
    const path = pathOf(one.model);
    const own = path === null ? null : hashModel(path);
    if (own === null || own === one.base) return true;
    errors.push({ part: `adapter of ${one.model}`, error: otherBase('its sender', one, own) });
    return false;
  });
  const contents: BundleContents = { ...kept, ...(fitting === undefined || fitting.length === 0 ? {} : { adapters: fitting }) }; // prettier-ignore
  if (Object.keys(contents).length === 0 && errors.length > 0) throw errors[0]!.error;
  return { kept: contents, refused: errors.map(({ part, error }) => ({ part, reason: error.message })) };
}
