import type { CommandEntry, CommandModule } from './command.ts';

type CommandHelp = Pick<CommandModule, 'flags' | 'help'>;

/**
 * A row of the table. `load` imports the command; `loadHelp` imports only flags and help, if that loads less (null: it
 * has none).
 */
function command(
  usage: string,
  description: string,
  examples: readonly string[],
  load: () => Promise<CommandModule>,
  loadHelp: (() => Promise<CommandHelp>) | null = load,
): CommandEntry {
  const [name, ...args] = usage.split(' ') as [string, ...string[]];
  return {
    name,
    args: args.join(' '),
    description,
    examples,
    help: async () => (await loadHelp?.())?.help ?? {},
    flags: async () => (await loadHelp?.())?.flags ?? [],
    load: async () => (await load()).run,
  };
}

/** All commands, in the order of the help. */
export const COMMANDS: readonly CommandEntry[] = [
  command(
    'run <model> [prompt]',
    'answer one prompt, given as an argument or on stdin',
    [
      'ruvllm run Qwen/Qwen2.5-0.5B-Instruct-GGUF:q4_k_m "Why is the sky blue?"',
      'cat notes.txt | ruvllm run model.gguf --system "Summarize this."',
      'ruvllm run model.gguf "Once upon a time" --raw --max-tokens 50 --seed 7 --json',
    ],
    () => import('./commands/run.ts'),
    async () => ({ flags: (await import('./commands/run-flags.ts')).RUN_FLAGS }),
  ),
  command(
    'chat [model]',
    'chat with the named model or the default model',
    [
      'ruvllm chat',
      'ruvllm chat model.gguf --system "Answer briefly." --temperature 0.2',
      "printf 'hello\\nand again\\n' | ruvllm chat model.gguf",
    ],
    () => import('./commands/chat.ts'),
    async () => ({ flags: (await import('./commands/run-flags.ts')).CHAT_FLAGS }),
  ),
  command(
    'serve [models...]',
    'serve models over an OpenAI-compatible HTTP API; NAME=MODEL sets a name',
    [
      'ruvllm serve',
      'ruvllm serve small=a.gguf large=b.gguf --alias gpt-4o=large --port 9000',
      'ruvllm keys create me && ruvllm serve model.gguf --host 0.0.0.0',
    ],
    () => import('./commands/serve.ts'),
    async () => ({ flags: (await import('./commands/serve-flags.ts')).SERVE_FLAGS }),
  ),
  command(
    'keys <action> [name]',
    "create, list or revoke the server's API keys",
    ['ruvllm keys create laptop --tenant alice', 'ruvllm keys create grafana --scope read-only', 'ruvllm keys list'],
    () => import('./commands/keys.ts'),
  ),
  command(
    'memory <action> [items...]',
    'add, search, export, import or inspect memory records',
    [
      'ruvllm memory add "The library opens at nine." --topic opening-hours',
      'ruvllm memory search "when can I read?" --k 3',
      'ruvllm memory stats --url http://127.0.0.1:8080',
    ],
    () => import('./commands/memory.ts'),
  ),
  command(
    'audit <action> [items...]',
    'search, summarize, verify or export the audit log',
    [
      'ruvllm audit search refund --from 7d',
      'ruvllm audit stats --bucket 3600 --url http://127.0.0.1:8080',
      'ruvllm audit verify',
    ],
    () => import('./commands/audit.ts'),
  ),
  command(
    'sessions <action> [items...]',
    'list, show or remove conversations stored in the memory',
    ['ruvllm sessions list --similar "opening hours"', 'ruvllm sessions show SESSION --limit 5'],
    () => import('./commands/sessions.ts'),
  ),
  command(
    'feedback <request-id>',
    'rate or correct an answer',
    [
      'ruvllm feedback REQUEST --thumbs up --url http://127.0.0.1:8080',
      'ruvllm feedback REQUEST --correction "It is Canberra." --model model.gguf',
    ],
    () => import('./commands/feedback.ts'),
  ),
  command(
    'learn <action> [items...]',
    'show what was learned from feedback, run a learning loop, roll back or forget',
    [
      'ruvllm learn status --url http://127.0.0.1:8080',
      'ruvllm learn run --loop deep --model model.gguf',
      'ruvllm learn rollback 0 --url http://127.0.0.1:8080',
    ],
    () => import('./commands/learn.ts'),
  ),
  command(
    'route <prompt>',
    'show which candidate the router chooses for a prompt, and why',
    [
      'ruvllm route "Are there infinitely many primes?" --url http://127.0.0.1:8080',
      'ruvllm route "hello" --route-config routes.json',
    ],
    () => import('./commands/route.ts'),
  ),
  command(
    'adapters <action> [items...]',
    "list, load or unload a server's LoRA adapters; merge, export or train adapter files",
    [
      'ruvllm adapters train --model model.gguf --data pairs.jsonl --output mine.gguf',
      'ruvllm serve model.gguf --adapter mine=mine.gguf',
      'ruvllm adapters list --url http://127.0.0.1:8080',
    ],
    () => import('./commands/adapters.ts'),
  ),
  command(
    'pull <model>',
    'download a model: owner/repo[:QUANT], hf:owner/repo/file.gguf or npm:package',
    ['ruvllm pull Qwen/Qwen2.5-0.5B-Instruct-GGUF:q4_k_m', 'ruvllm pull hf:owner/repo/file.gguf'],
    () => import('./commands/pull.ts'),
    null,
  ),
  command(
    'list',
    'list the models in the cache',
    ['ruvllm list', 'ruvllm list --json'],
    () => import('./commands/list.ts'),
    null,
  ),
  command(
    'show <model>',
    'show the metadata of a model file',
    ['ruvllm show model.gguf', 'ruvllm show owner/repo:Q4_K_M --json'],
    () => import('./commands/show.ts'),
    null,
  ),
  command(
    'rm <model>',
    'remove a model from the cache',
    ['ruvllm rm owner/repo:Q4_K_M'],
    () => import('./commands/rm.ts'),
    null,
  ),
  command(
    'tokenize <model> [text]',
    'show the tokens of a text, given as an argument or on stdin',
    ['ruvllm tokenize model.gguf "Hello, world"', 'ruvllm tokenize model.gguf --bos < prompt.txt'],
    () => import('./commands/tokenize.ts'),
  ),
  command(
    'embed <model> [texts...]',
    'print embeddings of texts as JSON; without texts, of each line of stdin',
    [
      'ruvllm embed model.gguf "first text" "second text"',
      'ruvllm embed model.gguf --dimensions 64 < lines.txt > vectors.jsonl',
    ],
    () => import('./commands/embed.ts'),
  ),
  command(
    'ps',
    'list running servers, their models and their load',
    ['ruvllm ps', 'ruvllm ps --url http://127.0.0.1:9000 --api-key KEY'],
    () => import('./commands/ps.ts'),
  ),
  command(
    'config <action>',
    'show the effective settings and where they come from',
    ['ruvllm config show', 'ruvllm config schema > ruvllm.config.schema.json'],
    () => import('./commands/config.ts'),
  ),
  command(
    'completion <shell>',
    'print a completion script for bash, zsh or fish',
    [
      'source <(ruvllm completion bash)',
      'ruvllm completion zsh > "${fpath[1]}/_ruvllm"',
      'ruvllm completion fish > ~/.config/fish/completions/ruvllm.fish',
    ],
    () => import('./commands/completion.ts'),
  ),
  command(
    'doctor',
    'show hardware, kernels, models and settings of this machine, with problems and advice',
    ['ruvllm doctor', 'ruvllm doctor --json'],
    () => import('./commands/doctor.ts'),
    null,
  ),
  command(
    'bench [topic]',
    'measure the speed of a model on this machine',
    ['ruvllm bench', 'ruvllm bench --model model.gguf --prompt-tokens 512 --runs 5'],
    () => import('./commands/bench.ts'),
  ),
];
