import type { MemoryOperation } from '../../memory/operations/index.ts';
import { DEFAULT_TENANT } from '../../runtime/generate-options.ts';
import type { CommandContext } from '../command.ts';
import type { Flag } from '../flags.ts';
import { usageError } from '../usage-error.ts';
import { EMBEDDER_FLAG } from './embedder-flag.ts';

/** A memory somewhere: in a folder of this machine, or behind a server. */
export interface MemoryClient {
  /** Runs an operation; the same input and the same answer wherever it is. */
  call<T>(operation: MemoryOperation['name'], input: object): Promise<T>;
  /** What learning calls the model that was typed; default: as it was. */
  readonly modelName?: string | null;
  close(): Promise<void>;
}

/** Where the memory is, and whose. */
export const CLIENT_FLAGS: readonly Flag[] = [
  {
    name: '--memory',
    value: 'place',
    description: 'a folder, or postgres://…; default: the folder of this user, which ruvllm serve uses, too',
  },
  { name: '--model', value: 'model', description: 'that makes the vectors; default: the model chat would use' },
  EMBEDDER_FLAG,
  { name: '--url', value: 'url', description: 'ask the running server there instead of opening a folder' },
  { name: '--api-key', value: 'key', description: 'the key for that server (RUVLLM_API_KEY)' },
  { name: '--tenant', value: 'name', description: `whose memory; default ${DEFAULT_TENANT}, or the tenant of the key` },
];

export interface ClientNeeds {
  /** Only then a model is looked for, and fetched if need be. */
  readonly needsModel: boolean;
  /** Else a folder that somebody names must be there. */
  readonly canCreate: boolean;
  /** Whether texts are compared, where that is not the same. */
  readonly needsVectors?: boolean;
}

/** Opens the memory the flags name. */
export async function openClient(context: CommandContext, needs: ClientNeeds): Promise<MemoryClient> {
  const { values } = context;
  if (values['--url'] === undefined) {
    if (values['--api-key'] !== undefined) throw usageError('--api-key needs --url', '--api-key');
    const { openLocalClient } = await import('./local-client.ts');
    return openLocalClient(context, needs);
  }
  for (const name of ['--memory', '--model', EMBEDDER_FLAG.name]) {
    if (values[name] !== undefined) throw usageError(`${name} is for a memory on this machine, not for --url`, name);
  }
  const { openHttpClient } = await import('./http-client.ts');
  return openHttpClient(context);
}
