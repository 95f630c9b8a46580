import { actionCommand } from '../actions.ts';
import { CHANGE_ACTIONS } from '../learning/change-actions.ts';
import { LEARN_FLAGS } from '../learning/client.ts';
import { INSPECT_ACTIONS } from '../learning/inspect-actions.ts';
import { FOLDER_NOTE } from '../memory/client.ts';

/** Shows and changes what was learned from feedback. */
export const { flags, help, run } = actionCommand(
  'learn',
  { ...INSPECT_ACTIONS, ...CHANGE_ACTIONS },
  { common: LEARN_FLAGS, notes: FOLDER_NOTE },
);
