import type { Memory } from '../../memory/memory.ts';
import { openNodeLearning } from '../../platform/node/learning/open-learning.ts';
import type { Learning } from '../../runtime/learning/learning.ts';
import type { CommandContext } from '../command.ts';

/** What a server learns with, and what to say of it. */
export interface ServedLearning {
  readonly opened: Learning | null;
  /** For people. */
  readonly state: string;
}

/** Learns where there is a memory to learn from, unless `--no-learning` says otherwise. */
export function openServedLearning({ output, values }: CommandContext, memory: Memory | null): ServedLearning {
  // `--no-learning` is `--learning` to the parser, set to false.
  if (values['--learning'] === false || values['--no-learning'] === true) {
    return { opened: null, state: 'learning: off (--no-learning)' };
  }
  if (memory === null) return { opened: null, state: 'learning: off, for there is no memory' };
  const opened = openNodeLearning({ memory, report: (message) => output.note(`learning: ${message}`) });
  return { opened, state: 'learning: from feedback, each tenant for itself; ruvllm learn status shows it' };
}
