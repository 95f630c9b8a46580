import { DEFAULT_TENANT } from '../../runtime/default-tenant.ts';
import type { CommandContext } from '../command.ts';
import { API_KEY_FLAG, MEMORY_DESCRIPTION, URL_FLAG } from '../config/common-flags.ts';
import { defineFlags, type Flag } from '../flags.ts';
import { conflictError, requiresError } from '../usage-error.ts';
import { EMBEDDER_FLAG, PROJECTION_FLAG } from './embedder-flag.ts';
import type { MemoryClient, ClientNeeds } from './client-types.ts';

/** Shared note of commands that open a memory folder. */
export const FOLDER_NOTE =
  'Only one process can open a memory folder at a time: use --url while ruvllm serve has it open.';

export const CLIENT_FLAGS: readonly Flag[] = [
  ...defineFlags({
    '--memory <place>': MEMORY_DESCRIPTION,
    '--model <model>':
      'chat model whose token embeddings are used without a sentence encoder; default: the default model of chat',
  }),
  EMBEDDER_FLAG,
  PROJECTION_FLAG,
  { ...URL_FLAG, description: 'use a running server instead of opening the memory' },
  API_KEY_FLAG,
  ...defineFlags({ '--tenant <name>': `tenant; default ${DEFAULT_TENANT}, or that of the API key` }),
];

/** Whether --url is set. Rejects --api-key without it, and `localFlags` with it. */
export function checkServerFlags({ values }: Pick<CommandContext, 'values'>, localFlags: readonly string[]): boolean {
  if (values['--url'] === undefined) {
    if (values['--api-key'] !== undefined) throw requiresError('--api-key', '--url');
    return false;
  }
  for (const name of localFlags) if (values[name] !== undefined) throw conflictError(name, '--url');
  return true;
}

/** Opens the memory named by the flags. */
export async function openClient(context: CommandContext, needs: ClientNeeds): Promise<MemoryClient> {
  if (checkServerFlags(context, ['--memory', '--model', EMBEDDER_FLAG.name, PROJECTION_FLAG.name])) {
    const { openHttpClient } = await import('./http-client.ts');
    return openHttpClient(context);
  }
  const { openLocalClient } = await import('./local-client.ts');
  return openLocalClient(context, needs);
}
