import type { Verdict } from '../../memory/schemas/trajectory.ts';

/** Least quality of a good answer. */
const SUCCESS_FROM = 0.7;
/** Below it an answer is bad. */
const FAILURE_BELOW = 0.3;

/** The verdict of a quality from 0 to 1; null: unrated. */
export function verdictOf(quality: number | null): Verdict {
  if (quality === null) return 'unknown';
  if (quality >= SUCCESS_FROM) return 'success';
  return quality < FAILURE_BELOW ? 'failure' : 'partial';
}
