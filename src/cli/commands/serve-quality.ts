import type { OpinionOptions } from '../../runtime/quality/second-opinions.ts';
import type { CommandContext } from '../command.ts';
import { conflictError, usageError } from '../usage-error.ts';

/** The further answers that estimates of quality compare with. */
export function readOpinions({ values }: CommandContext, models: readonly string[]): OpinionOptions {
  const secondSample = values['--quality-sample'] === true;
  const peer = (values['--quality-peer'] as string | undefined) ?? null;
  const flag = secondSample ? '--quality-sample' : '--quality-peer';
  // The parser sets `--memory` to false for `--no-memory`.
  if ((secondSample || peer !== null) && values['--memory'] === false) throw conflictError(flag, '--no-memory');
  if (peer !== null && !models.includes(peer)) {
    throw usageError(`${JSON.stringify(peer)} is none of the served models: ${models.join(', ')}`, '--quality-peer');
  }
  return { secondSample, peer };
}
