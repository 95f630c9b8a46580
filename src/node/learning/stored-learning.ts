import type { ErasureSubject } from '../../core/erasure.ts';
import type { Sona } from '../../learning/sona/sona.ts';
import type { Memory } from '../../memory/memory.ts';
import { countLearned, eraseLearned } from '../../runtime/learning/erase-learned.ts';
import { openNodeLearning } from './open-learning.ts';

async function withSona<T>(memory: Memory, run: (sona: Sona) => Promise<T>): Promise<T> {
  const learning = openNodeLearning({ memory });
  try {
    return await run(learning.sona);
  } finally {
    await learning.close();
  }
}

/** Erases learned state of a memory while learning is off; models learn again when they are loaded. */
export const eraseStored = (memory: Memory, subject: ErasureSubject): Promise<void> =>
  withSona(memory, (sona) => eraseLearned(sona, subject));

export const countStored = (memory: Memory, subject: ErasureSubject): Promise<number> =>
  withSona(memory, (sona) => countLearned(sona, memory, subject));
