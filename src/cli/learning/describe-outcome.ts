import type { ReportedOutcome } from '../../runtime/learning/operations/index.ts';
import { escapeLine } from '../safe-text.ts';

const STATES: Readonly<Record<ReportedOutcome['state'], string>> = {
  remembered: 'remembered',
  learned: 'learned',
  refused: 'not learned',
  'already-known': 'already known',
  superseded: 'superseded',
  stored: 'stored',
  pending: 'stored',
};

/** The outcome of feedback as lines of text. */
export function describeOutcome({ state, reason, supersedes }: ReportedOutcome): string[] {
  const replaced = supersedes.map((requestId) => `replaces the feedback on request ${requestId}`);
  return [escapeLine(`${STATES[state]}: ${reason}`), ...replaced];
}
