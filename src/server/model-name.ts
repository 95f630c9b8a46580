import type { ModelStatus } from '../runtime/requests/model-host.ts';
import type { Services } from './services.ts';
import { required } from './wire/fields.ts';

/** The model that answers a request for `name`; empty: the request names none, which is enough if one model is served. */
export function resolveModelName(
  name: string,
  { models, routing, hasModelFallback }: Pick<Services, 'models' | 'routing' | 'hasModelFallback'>,
): string {
  const [first, ...others] = models.list();
  if (name === '') return required(others.length === 0 || hasModelFallback ? (first?.id ?? null) : null, 'model');
  const isKnown = !hasModelFallback || name === routing?.config.alias || models.find(name) !== null;
  return isKnown ? name : (first?.id ?? name);
}

/** A short name for people; the id where the file cannot be read. */
export const displayNameOf = (
  { id, model, path }: Pick<ModelStatus, 'id' | 'model' | 'path'>,
  { library }: Pick<Services, 'library'>,
): string => model?.modelInfo().displayName ?? (path === undefined ? null : library?.describe(path)?.displayName) ?? id;
