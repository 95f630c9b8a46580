import { z } from 'zod';
import { RuvLLMError } from '../../core/errors.ts';
import { parseWith } from '../../memory/schemas/primitives.ts';
import { checkRouteEvidence, routeEvidence } from './route-evidence.ts';

/** The shared data of a bundle. */
const contents = z.strictObject({ routes: routeEvidence });
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
  checkRouteEvidence(read.routes);
  return read;
}
