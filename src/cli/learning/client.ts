import { learningOperation, learningPath } from '../../runtime/learning/operations/index.ts';
import type { CommandContext } from '../command.ts';
import type { Flag } from '../flags.ts';
import type { ClientKind } from '../memory/action.ts';
import { CLIENT_FLAGS, type ClientNeeds, type MemoryClient } from '../memory/client.ts';
import { usageError } from '../usage-error.ts';

/** Where what is learned lies, whose it is, and of which model. */
const LEARN_CLIENT_FLAGS: readonly Flag[] = CLIENT_FLAGS.filter(({ name }) => name !== '--memory-embedder').map(
  (flag) =>
    flag.name === '--model'
      ? {
          ...flag,
          description:
            'that learns: a name of the server, or here a file or reference, NAME=MODEL where serve named it so',
        }
      : flag,
);

async function openLearnClient(context: CommandContext, needs: ClientNeeds): Promise<MemoryClient> {
  const { values } = context;
  if (values['--url'] === undefined) {
    if (values['--api-key'] !== undefined) throw usageError('--api-key needs --url', '--api-key');
    const { openLocalLearning } = await import('./local-client.ts');
    return openLocalLearning(context, needs);
  }
  if (values['--memory'] !== undefined) {
    throw usageError('--memory is for a memory on this machine, not for --url', '--memory');
  }
  const { openHttpClient } = await import('../memory/http-client.ts');
  return openHttpClient(context, (name) => learningPath(learningOperation(name)));
}

/** Learning on this machine, or behind a server. */
export const LEARN_CLIENT: ClientKind = { flags: LEARN_CLIENT_FLAGS, open: openLearnClient };
