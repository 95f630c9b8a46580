import { LEARN_CLIENT } from '../learning/client.ts';
import { LOOK_ACTIONS } from '../learning/look-actions.ts';
import { CHANGE_ACTIONS } from '../learning/change-actions.ts';
import { actionRunner, type Actions, flagsOf, helpOf } from '../memory/action.ts';

const LEARN_ACTIONS: Actions = { ...LOOK_ACTIONS, ...CHANGE_ACTIONS };

export const LEARN_FLAGS = flagsOf(LEARN_ACTIONS, LEARN_CLIENT.flags);
export const LEARN_HELP = helpOf(
  'learn',
  LEARN_ACTIONS,
  `Examples:
  ruvllm learn status --url http://127.0.0.1:8080
  ruvllm learn run --loop deep --model model.gguf
  ruvllm learn rollback 0 --url http://127.0.0.1:8080
  ruvllm learn export mine.gguf --model model.gguf

A folder has one user at a time: while ruvllm serve has it open, use --url.`,
);
/** Shows and changes what was learned from feedback. */
export const learn = actionRunner('learn', LEARN_ACTIONS, LEARN_CLIENT);
