import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

export interface SuiteGroup {
  readonly description: string;
  readonly schema: unknown;
  readonly tests: readonly { readonly description: string; readonly data: unknown; readonly valid: boolean }[];
}

export const SUITE_DRAFTS = ['draft7', 'draft2020-12'] as const;

/** The schemas of a draft's folder in the JSON Schema test suite at `suite`. */
export function readSuiteGroups(suite: string, draft: string, folder: string): { file: string; group: SuiteGroup }[] {
  const at = join(suite, draft, folder);
  return readdirSync(at)
    .filter((file) => file.endsWith('.json'))
    .flatMap((file) => {
      const groups = JSON.parse(readFileSync(join(at, file), 'utf8')) as SuiteGroup[];
      return groups.map((group) => ({ file: `${draft}/${folder}${file}`, group: withDialect(group, draft) }));
    });
}

/** Schemas of draft 7 do not always say so; their folder does. */
function withDialect(group: SuiteGroup, draft: string): SuiteGroup {
  const { schema } = group;
  if (draft !== 'draft7' || typeof schema !== 'object' || schema === null || '$schema' in schema) return group;
  return { ...group, schema: { $schema: 'http://json-schema.org/draft-07/schema#', ...schema } };
}

/**
 * The share of both drafts' enforceable schemas that `compile` accepts; null if the suite is missing. A schema without a
 * valid instance describes no text, and one that refers to other documents is not complete.
 */
export function acceptedShareOf(suite: string, compile: (schema: unknown) => void): number | null {
  if (!existsSync(suite)) return null;
  const groups = SUITE_DRAFTS.flatMap((draft) => readSuiteGroups(suite, draft, ''));
  let [numAccepted, numEnforceable] = [0, 0];
  for (const { group } of groups) {
    const hasInstance = group.tests.some(({ valid }) => valid);
    try {
      compile(group.schema);
      numAccepted++;
      numEnforceable++;
    } catch (error) {
      if (hasInstance && !refersOutside(error)) numEnforceable++;
    }
  }
  return numAccepted / numEnforceable;
}

function refersOutside(error: unknown): boolean {
  const { keyword, reason } = (error as { data?: { keyword?: string; reason?: string } }).data ?? {};
  const isReference = keyword === '$ref' || keyword === '$dynamicRef';
  return keyword === '$schema' || (isReference && reason!.endsWith('is outside this schema'));
}
