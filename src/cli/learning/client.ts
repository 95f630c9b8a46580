import { learningOperation, learningPath } from '../../runtime/learning/operations/index.ts';
import type { CommandContext } from '../command.ts';
import type { Flag } from '../flags.ts';
import type { ClientKind } from '../memory/action.ts';
import { checkServerFlags, CLIENT_FLAGS } from '../memory/client.ts';
import { type ClientNeeds, type MemoryClient } from '../memory/client-types.ts';

const MODEL_DESCRIPTION =
  'model that learns: a name on the server, or locally a file or reference (NAME=MODEL if served under a name)';

const LEARN_CLIENT_FLAGS: readonly Flag[] = CLIENT_FLAGS.filter(({ name }) => name !== '--memory-embedder').map(
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
export const LEARN_CLIENT: ClientKind = { flags: LEARN_CLIENT_FLAGS, open: openLearnClient };
