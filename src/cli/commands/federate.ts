import { actionCommand } from '../actions.ts';
import { FEDERATE_ACTIONS } from '../learning/federate-actions.ts';
import { LEARN_FLAGS } from '../learning/client.ts';
import { FOLDER_NOTE } from '../memory/client.ts';

/** Exchanges ratings, patterns and adapters with trusted nodes. */
export const { flags, help, run } = actionCommand('federate', FEDERATE_ACTIONS, {
  common: LEARN_FLAGS.filter(({ name }) => name !== '--model'),
  notes: `Bundles contain numbers, not texts, unless --texts is given. ${FOLDER_NOTE}`,
});
