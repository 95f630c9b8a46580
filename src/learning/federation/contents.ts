import { z } from 'zod';
import { RuvLLMError } from '../../core/errors.ts';
import { parseWith } from '../../memory/schemas/primitives.ts';
import { checkRouteEvidence, routeEvidence } from './route-evidence.ts';

/** What a bundle shares; `epsilon` is the privacy loss that its sender accounts for all its bundles. */
const contents = z.strictObject({
  routes: routeEvidence.nullable(),
  privacy: z
    .strictObject({ epsilon: z.number().min(0), delta: z.number().min(0).max(1), noise: z.number().min(0) })
    .nullable(),
});
export type BundleContents = z.infer<typeof contents>;

/** Reads the signed text; throws for unknown fields and for numbers that nothing can learn from. */
export function readContents(text: string): BundleContents {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw new RuvLLMError('invalid_option', 'bundle: the contents are not JSON', { cause });
  }
  const read = parseWith<BundleContents>(contents, value, 'bundle');
  if (read.routes !== null) checkRouteEvidence(read.routes);
  return read;
}
