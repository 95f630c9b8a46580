import type { Flag } from '../flags.ts';

/** Options of several commands; those have flags of their own for them, with more to say. */
export const COMMON_FLAGS: readonly Flag[] = [
  {
    name: '--model',
    value: 'model',
    variable: 'RUVLLM_MODEL',
    description: 'the model of chat, serve and bench where none is named: a path, owner/repo[:QUANT] or npm:package',
  },
  {
    name: '--memory',
    value: 'place',
    variable: 'RUVLLM_MEMORY',
    description: 'where what is remembered lies: a folder, or postgres://…; default: the folder of this user',
  },
  {
    name: '--api-key',
    value: 'key',
    variable: 'RUVLLM_API_KEY',
    isSecret: true,
    description: 'the key that commands give to a server',
  },
];
