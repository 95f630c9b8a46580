import type { Memory } from '../../memory/memory.ts';
import { openNodeLearning } from '../../platform/node/learning/open-learning.ts';
import type { Learning } from '../../runtime/learning/learning.ts';
import type { CommandContext } from '../command.ts';
import { usageError } from '../usage-error.ts';

const RATE_FLAG = '--learning-rate';
const IMPLICIT_FLAG = '--implicit-feedback';

/** What a server learns with, and what to say of it. */
export interface ServedLearning {
  readonly opened: Learning | null;
  /** For people. */
  readonly state: string;
}

/** What was typed, checked before anything is opened. */
export interface LearningWish {
  readonly isOff: boolean;
  readonly rate: number | null;
  readonly isImplicit: boolean;
}

export function readLearningWish({ values }: Pick<CommandContext, 'values'>): LearningWish {
  const rate = (values[RATE_FLAG] as number | undefined) ?? null;
  // What begins with `--no-` is false to the parser when it is typed.
  const isOff = values['--no-learning'] === false;
  if (isOff && rate !== null) throw usageError(`${RATE_FLAG} is nothing without learning`, RATE_FLAG);
  if (rate !== null && !(rate > 0 && rate <= 1)) {
    throw usageError(`${RATE_FLAG} must be above 0 and at most 1, got ${rate}`, RATE_FLAG);
  }
  const isImplicit = values[IMPLICIT_FLAG] === true;
  if (isOff && isImplicit) throw usageError(`${IMPLICIT_FLAG} is nothing without learning`, IMPLICIT_FLAG);
  return { isOff, rate, isImplicit };
}

/** Learns where there is a memory to learn from, unless `--no-learning` says otherwise. */
export function openServedLearning(
  { output }: CommandContext,
  memory: Memory | null,
  wish: LearningWish,
): ServedLearning {
  const { isOff, rate, isImplicit } = wish;
  if (isOff) return { opened: null, state: 'learning: off (--no-learning)' };
  if (memory === null) return { opened: null, state: 'learning: off, for there is no memory' };
  const opened = openNodeLearning({
    memory,
    implicitFeedback: isImplicit,
    ...(rate === null ? {} : { instantLearningRate: rate }),
    report: (message) => output.note(`learning: ${message}`),
  });
  const beside = isImplicit ? ', and a little from asking again, asking differently and leaving' : '';
  return { opened, state: `learning: from feedback${beside}, each tenant for itself; ruvllm learn status shows it` };
}
