import { z } from 'zod';
import { RuvLLMError } from '../../core/errors.ts';
import { parseWith } from '../../memory/schemas/primitives.ts';
import { adapterEvidence, checkAdapterEvidence, MAX_SHARED_ADAPTERS } from './adapter-evidence.ts';
import { MAX_CONTENTS_CHARS } from './bundle.ts';
import { checkPatternEvidence, patternEvidence } from './pattern-evidence.ts';
import { checkRouteEvidence, routeEvidence } from './route-evidence.ts';

/** The shared data of a bundle. */
const contents = z.strictObject({
  routes: routeEvidence.optional(),
  patterns: patternEvidence.optional(),
  adapters: z.array(adapterEvidence).max(MAX_SHARED_ADAPTERS).optional(),
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
  if (read.routes !== undefined) checkRouteEvidence(read.routes);
  if (read.patterns !== undefined) checkPatternEvidence(read.patterns);
  if (read.adapters !== undefined) checkAdapterEvidence(read.adapters);
  return read;
}

/** The contents as text, without the oldest ratings or the least valuable patterns if they do not fit. */
export function fitContents(all: BundleContents): { readonly contents: BundleContents; readonly text: string } {
  const fitted = structuredClone(all);
  for (;;) {
    const text = JSON.stringify(fitted);
    if (text.length <= MAX_CONTENTS_CHARS) return { contents: fitted, text };
    const kept = 0.95 * (MAX_CONTENTS_CHARS / text.length);
    const { routes: { examples } = { examples: [] }, patterns: { patterns } = { patterns: [] } } = fitted;
    // Long texts or wide vectors; adapters are below the limit by themselves.
    const isRoutes = JSON.stringify(examples).length >= JSON.stringify(patterns).length;
    if (isRoutes) examples.splice(0, Math.ceil(examples.length * (1 - kept)));
    else patterns.splice(Math.floor(patterns.length * kept));
  }
}
