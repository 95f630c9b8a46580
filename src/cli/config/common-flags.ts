import type { Flag } from '../flags.ts';

export const MEMORY_DESCRIPTION = "memory location: a folder or postgres://…; default: this user's memory folder";
export const URL_FLAG: Flag = { name: '--url', value: 'url', description: 'use the running server at this URL' };
export const API_KEY_FLAG: Flag = { name: '--api-key', value: 'key', description: 'API key of the server (RUVLLM_API_KEY)' }; // prettier-ignore

/** Settings shared by several commands, whose own flags describe them in more detail. */
export const COMMON_FLAGS: readonly Flag[] = [
  {
    name: '--model',
    value: 'model',
    variable: 'RUVLLM_MODEL',
    description: 'default model of chat, serve and bench: a path, owner/repo[:QUANT] or npm:package',
  },
  { name: '--memory', value: 'place', variable: 'RUVLLM_MEMORY', description: MEMORY_DESCRIPTION },
  {
    name: '--api-key',
    value: 'key',
    variable: 'RUVLLM_API_KEY',
    isSecret: true,
    description: 'API key that commands send to a server',
  },
];
