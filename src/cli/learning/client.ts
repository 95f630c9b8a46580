import { learningOperation, learningPath } from '../../runtime/learning/operations/index.ts';
import type { Action } from '../actions.ts';
import type { CommandContext } from '../command.ts';
import type { Flag } from '../flags.ts';
import { type ClientKind, operationAction, type OperationSpec } from '../memory/action.ts';
import { checkServerFlags, CLIENT_FLAGS } from '../memory/client.ts';
import type { ClientNeeds, MemoryClient } from '../memory/client-types.ts';

const MODEL_DESCRIPTION =
  'model that learns: a name on the server, or locally a file or reference (NAME=MODEL if served under a name)';

export const LEARN_FLAGS: readonly Flag[] = CLIENT_FLAGS.filter(({ name }) => name !== '--memory-embedder').map(
  (flag) => (flag.name === '--model' ? { ...flag, description: MODEL_DESCRIPTION } : flag),
);

async function openLearnClient(context: CommandContext, needs: ClientNeeds): Promise<MemoryClient> {
  if (checkServerFlags(context, ['--memory'])) {
    const { openHttpClient } = await import('../memory/http-client.ts');
    return openHttpClient(context, (name) => learningPath(learningOperation(name)));
  }
  const { openLocalLearning } = await import('./local-client.ts');
  return openLocalLearning(context, needs);
}

/** Learning on this machine or on a server. */
export const LEARN_CLIENT: ClientKind = { operationOf: learningOperation, open: openLearnClient };

export const learnAction = <T extends object>(operation: string, spec: OperationSpec<T>): Action =>
  operationAction(LEARN_CLIENT, operation, spec);
