import { z } from 'zod';
import { nameId } from '../../memory/common/ids.ts';
import { retryConflict } from '../../memory/common/retry-conflict.ts';
import type { MemoryServices } from '../../memory/common/services.ts';
import { statePut } from '../../memory/common/store-access.ts';
import { count, name, parseStored, text, timeMs } from '../../memory/schemas/primitives.ts';
import type { MemoryStore } from '../../memory/types.ts';
import type { ErrorPatterns, Problem } from './types.ts';
import { messageOf } from '../../core/errors.ts';

const RECORD = 'error-patterns';
/** Of a tenant; the rarest and oldest make room. */
export const MAX_PATTERNS = 64;
const MAX_CHARS = 200;
/** Errors of fewer answers are chance. */
const MIN_COUNT = 3;
/** Errors put before an attempt: more would be more to misunderstand. */
const MAX_SHOWN = 3;

const stored = z.strictObject({
  patterns: z
    .array(z.strictObject({ subject: name, message: text(MAX_CHARS, 1), count, lastMs: timeMs }))
    .max(MAX_PATTERNS),
});
type Patterns = z.infer<typeof stored>['patterns'];

/** Values of one request differ in the next, and may be a user's text: only names of the schema stay. */
const generalize = (message: string): string =>
  message
    .replace(/the value after ".*" does/su, 'a value does')
    .replace(/: ".*" is not allowed; use only/su, ': another name is not allowed; use only')
    .replace(/\d+/g, 'N')
    .slice(0, MAX_CHARS)
    .toWellFormed();

/** Error patterns in the memory of each tenant. Errors of a caller's own check are not stored: they may quote a user. */
export function createErrorPatterns(
  store: MemoryStore,
  { sha256, now }: Pick<MemoryServices, 'sha256' | 'now'>,
  report: (message: string) => void,
): ErrorPatterns {
  const idOf = (tenant: string): string => nameId(sha256, tenant, RECORD);
  async function read(tenant: string): Promise<{ readonly patterns: Patterns; readonly version: number }> {
    const [record] = await store.get(tenant, [idOf(tenant)]);
    if (record == null) return { patterns: [], version: 0 };
    const { patterns } = parseStored<z.infer<typeof stored>>(stored, record.body, `error patterns of ${tenant}`);
    return { patterns, version: record.version };
  }

  return {
    async frequent(tenant, subjects) {
      try {
        const { patterns } = await read(tenant);
        return patterns
          .filter((one) => one.count >= MIN_COUNT && subjects.includes(one.subject))
          .sort((a, b) => b.count - a.count || b.lastMs - a.lastMs)
          .slice(0, MAX_SHOWN)
          .map(({ message }) => message);
      } catch (error) {
        report(`reading error patterns failed: ${messageOf(error)}`);
        return [];
      }
    },
    async note(tenant, problems) {
      const noted = problems.filter(({ subject }) => subject !== 'check');
      if (noted.length === 0) return;
      try {
        await retryConflict(async () => {
          const { patterns, version } = await read(tenant);
          const lastMs = Math.floor(now());
          const next = addAll(patterns, noted, lastMs);
          await store.put([
            statePut({ id: idOf(tenant), tenant, ifVersion: version }, { patterns: next }, { name: RECORD }),
          ]);
        });
      } catch (error) {
        report(`storing error patterns failed: ${messageOf(error)}`);
      }
    },
  };
}

function addAll(patterns: Patterns, problems: readonly Problem[], lastMs: number): Patterns {
  const all = new Map(patterns.map((one) => [JSON.stringify([one.subject, one.message]), one]));
  for (const problem of problems) {
    const [subject, message] = [problem.subject.slice(0, 256), generalize(problem.message)];
    const key = JSON.stringify([subject, message]);
    all.set(key, { subject, message, count: (all.get(key)?.count ?? 0) + 1, lastMs });
  }
  return [...all.values()].sort((a, b) => b.count - a.count || b.lastMs - a.lastMs).slice(0, MAX_PATTERNS);
}
