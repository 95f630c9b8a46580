import { LEARN_CLIENT } from '../learning/client.ts';
import { LOOK_ACTIONS } from '../learning/look-actions.ts';
import { CHANGE_ACTIONS } from '../learning/change-actions.ts';
import { actionRunner, type Actions, flagsOf, helpOf } from '../memory/action.ts';

const LEARN_ACTIONS: Actions = { ...LOOK_ACTIONS, ...CHANGE_ACTIONS };

export const LEARN_FLAGS = flagsOf(LEARN_ACTIONS, LEARN_CLIENT.flags);
export const LEARN_HELP = helpOf(
  LEARN_ACTIONS,
  'A folder has one user at a time: while ruvllm serve has it open, use --url.',
);
/** Shows and changes what was learned from feedback. */
export const learn = actionRunner('learn', LEARN_ACTIONS, LEARN_CLIENT);
