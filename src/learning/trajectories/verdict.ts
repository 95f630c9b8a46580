import type { Verdict } from '../../memory/schemas/trajectory.ts';

/** From here up an answer was good, */
const SUCCESS_FROM = 0.7;
/** and below this it was not. */
const FAILURE_BELOW = 0.3;

/** What a quality from 0 to 1 says; null: nobody said. */
export function verdictOf(quality: number | null): Verdict {
  if (quality === null) return 'unknown';
  if (quality >= SUCCESS_FROM) return 'success';
  return quality < FAILURE_BELOW ? 'failure' : 'partial';
}
