import { defineFlags, type Flag, withVariables } from '../flags.ts';

export const MEMORY_DESCRIPTION = "memory location: a folder or postgres://…; default: this user's memory folder";
export const [URL_FLAG, API_KEY_FLAG] = defineFlags({
  '--url <url>': 'use the running server at this URL',
  '--api-key <key>': 'API key of the server (RUVLLM_API_KEY)',
}) as readonly [Flag, Flag];

/** Settings shared by several commands, whose own flags describe them in more detail. */
export const COMMON_FLAGS: readonly Flag[] = withVariables([
  ...defineFlags({
    '--model <model>': 'default model of chat, serve and bench: a path, owner/repo[:QUANT] or npm:package',
    '--memory <place>': MEMORY_DESCRIPTION,
  }),
  { ...API_KEY_FLAG, isSecret: true, description: 'API key that commands send to a server' },
]);
