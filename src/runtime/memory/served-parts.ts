import { clipText } from '../../memory/common/text-limits.ts';
import type { AuditEntry } from '../../memory/schemas/audit.ts';
import type { ReflectionReport } from '../reflection/types.ts';
import type { RouteChoice } from '../routing/types.ts';
import type { Recalled, ServedCall } from './types.ts';

/** Patterns that were recalled or influenced the router. */
export function usedPatterns({ sources }: Recalled, served: ServedCall | null): readonly string[] {
  const shown = sources.flatMap(({ id, kind }) => (kind === 'pattern' ? [id] : []));
  return [...new Set([...shown, ...(served?.choice.patternIds ?? [])])];
}

/** For the audit entry, which has space for four candidates. */
export function routingOf({ candidate, contextSize, sampling, confidence, probs }: RouteChoice) {
  const { temperature, topP, source: samplingSource } = sampling;
  return { model: candidate.id, contextSize, temperature, topP, samplingSource, confidence, modelProbs: probs.slice(0, 4) }; // prettier-ignore
}

/** Longer errors are cut off: the answer that they are about is in the entry. */
const MAX_ERROR = 512;

const cut = (error: string | null): string | null => error && clipText(error, MAX_ERROR).text;

/** The attempts, for the audit entry. */
export const reflectionOf = ({
  ending,
  chosen,
  error,
  attempts,
}: ReflectionReport): NonNullable<AuditEntry['reflection']> => ({
  ending,
  chosen,
  error: cut(error),
  attempts: attempts.map((attempt) => ({ ...attempt, error: cut(attempt.error) })),
});
