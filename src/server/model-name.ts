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
