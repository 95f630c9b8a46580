import type { ModelStatus } from '../runtime/requests/model-host.ts';
import type { Caller } from './caller.ts';
import { refusal } from './errors.ts';
import type { Services } from './services.ts';
import { required } from './wire/fields.ts';

/** The model that answers a request for `name`; empty: the request names none, which is enough if one model is served. */
export function resolveModelName(
  name: string,
  { models, routing, hasModelFallback }: Pick<Services, 'models' | 'routing' | 'hasModelFallback'>,
  { tenant }: Pick<Caller, 'tenant'>,
): string {
  const [first, ...others] = models.list();
  if (name === '' && routing === null) requireFirstModel({ models });
  if (name === '') return required(others.length === 0 || hasModelFallback ? (first?.id ?? null) : null, 'model');
  const isKnown = !hasModelFallback || name === routing?.config.alias || models.find(name, tenant) !== null;
  return isKnown ? name : (first?.id ?? name);
}

/** The first model; a 404 if the server has none. */
export function requireFirstModel({ models }: Pick<Services, 'models'>): string {
  const [first] = models.list();
  if (first !== undefined) return first.id;
  throw refusal(
    404,
    'model_not_found',
    'this server has no model; choose one in the dashboard, or run ruvllm serve MODEL',
  );
}

/** A short name for people; the id where the file cannot be read. */
export const displayNameOf = (
  { id, model, path }: Pick<ModelStatus, 'id' | 'model' | 'path'>,
  { library }: Pick<Services, 'library'>,
): string => model?.modelInfo().displayName ?? (path === undefined ? null : library?.describe(path)?.displayName) ?? id;
