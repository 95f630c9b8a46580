import type { Memory } from '../../memory/memory.ts';
import type { Learning } from '../../runtime/learning/learning.ts';
import type { CommandContext } from '../command.ts';
import { requiresError, usageError } from '../usage-error.ts';

const RATE_FLAG = '--learning-rate';
const IMPLICIT_FLAG = '--implicit-feedback';

export interface ServedLearning {
  readonly learning: Learning | null;
  /** One line for the startup output. */
  readonly summary: string;
}

export interface LearningFlags {
  readonly isOff: boolean;
  readonly rate: number | null;
  readonly isImplicit: boolean;
  readonly recallsCorrections: boolean;
}

/** Reads and validates flags before anything is opened. */
export function readLearningFlags({ values }: Pick<CommandContext, 'values'>): LearningFlags {
  const rate = (values[RATE_FLAG] as number | undefined) ?? null;
  // The parser sets `--no-` flags to false.
  const isOff = values['--no-learning'] === false;
  if (isOff && rate !== null) throw requiresError(RATE_FLAG, 'learning to be enabled');
  if (rate !== null && !(rate > 0 && rate <= 1)) {
    throw usageError(`${RATE_FLAG} must be above 0 and at most 1, got ${rate}`, RATE_FLAG);
  }
  const isImplicit = values[IMPLICIT_FLAG] === true;
  if (isOff && isImplicit) throw requiresError(IMPLICIT_FLAG, 'learning to be enabled');
  return { isOff, rate, isImplicit, recallsCorrections: values['--no-corrections'] !== false };
}

/** Opens learning if there is a memory and no `--no-learning`. */
export async function openServedLearning(
  { output }: CommandContext,
  memory: Memory | null,
  { isOff, rate, isImplicit, recallsCorrections }: LearningFlags,
): Promise<ServedLearning> {
  if (isOff) return { learning: null, summary: 'learning: off (--no-learning)' };
  if (memory === null) return { learning: null, summary: 'learning: off (requires memory)' };
  const { openNodeLearning } = await import('../../node/learning/open-learning.ts');
  const learning = openNodeLearning({
    memory,
    implicitFeedback: isImplicit,
    corrections: recallsCorrections,
    ...(rate === null ? {} : { instantLearningRate: rate }),
    report: (message) => output.note(`learning: ${message}`),
  });
  const implicit = isImplicit ? ' and from repeated, rephrased and abandoned requests' : '';
  return { learning, summary: `learning: from feedback${implicit}, per tenant; ruvllm learn status shows details` };
}
