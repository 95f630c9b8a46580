import { MEMORY_DESCRIPTION } from '../config/common-flags.ts';
import { defineFlags, type Flag } from '../flags.ts';

/** Recall of `run` and `chat`; `users`: the flags that --memory requires. */
export const recallFlags = (users: string): readonly Flag[] =>
  defineFlags({
    '--recall <k>': 'put up to k matching texts of the memory before each question, and name them (1 to 50)',
    '--remember':
      'agent memory: store the messages of this session, extract facts, and recall both in this and later sessions',
    '--memory <place>': `${MEMORY_DESCRIPTION} (with ${users})`,
  });
