import { LEARN_CLIENT } from '../learning/client.ts';
import { INSPECT_ACTIONS } from '../learning/inspect-actions.ts';
import { CHANGE_ACTIONS } from '../learning/change-actions.ts';
import { actionRunner, type Actions, flagsOf, helpOf } from '../memory/action.ts';
import { FOLDER_NOTE } from '../memory/client.ts';

const LEARN_ACTIONS: Actions = { ...INSPECT_ACTIONS, ...CHANGE_ACTIONS };

export const LEARN_FLAGS = flagsOf(LEARN_ACTIONS, LEARN_CLIENT.flags);
export const LEARN_HELP = helpOf(LEARN_ACTIONS, FOLDER_NOTE);
/** Shows and changes what was learned from feedback. */
export const learn = actionRunner('learn', LEARN_ACTIONS, LEARN_CLIENT);
