import { SERVE_ADDRESS } from '../config/serve-address.ts';
import { INSTANT_LEARNING_RATE } from '../../learning/micro-lora/instant-learning-rate.ts';
import { COMMON_FLAGS } from '../config/common-flags.ts';
import { defineFlags, type Flag, withVariables } from '../flags.ts';
import { LOAD_FLAGS } from '../load-flags.ts';
import { EMBEDDER_FLAG, PROJECTION_FLAG } from '../memory/embedder-flag.ts';
import { FLEET_SECRET_FLAG } from './fleet-secret-flag.ts';
import { KV_SHARED_FLAGS } from './kv-shared-flags.ts';
import { ADVERTISE_FLAG, NATS_FLAG } from './nats-flag.ts';

/** Also of the gateway. */
export const OTLP_FLAG = {
  '--otlp <url>':
    'send traces and metrics to this OpenTelemetry collector by OTLP (HTTP, JSON); default: OTEL_EXPORTER_OTLP_ENDPOINT, or none',
};

/** Limits on requests. */
export const LIMIT_FLAGS: readonly Flag[] = withVariables(
  defineFlags({
    '--max-body <size> maxBodyBytes': 'maximum size of a request body; default 4MiB',
    '--max-choices <n> maxChoices': 'maximum number of choices per request; default 16',
    '--max-requests <n> maxRequests': 'maximum number of concurrent generation requests; default 256',
    '--max-requests-per-tenant <n> maxRequestsPerTenant':
      'maximum number of concurrent generation requests per tenant; default 64',
    '--requests-per-minute <x> requestsPerMinute': 'rate limit per tenant; default 6000',
    '--max-batch-file <size> maxBatchFileBytes': 'maximum size of a file of batch requests; default and maximum 32MiB',
    '--batch-concurrency <n> batchConcurrency': 'batch requests that run at once, for all tenants; default 4',
  }),
);

/** Options of each served model, in addition to `LOAD_FLAGS`. */
export const BATCH_FLAGS: readonly Flag[] = withVariables(
  defineFlags({
    '--max-sequences <n> maxSequences': 'maximum number of sequences computed at once, per model; default 8',
    '--batch-tokens <n> maxBatchTokens': 'maximum number of tokens per batch; default 512',
    '--max-waiting <n> maxWaiting':
      'maximum number of waiting requests per model; further requests get a 503; default 1024',
    '--step-timeout <seconds> stepTimeoutMs':
      'how long a busy engine may finish no step before it is replaced and its requests fail; default 120',
    '--engine-process engineProcess':
      'run each engine in its own process, which is replaced after a fault of native code',
  }),
);

/** Defaults by setting key. */
export const SERVE_DEFAULTS = {
  ...SERVE_ADDRESS,
  alias: [],
  adapter: [],
  adapterFolder: [],
  cors: [],
  mcp: [],
  mcpUrls: false,
  learning: true,
  corrections: true,
  dashboard: true,
  backupKeep: 7,
  learningRate: INSTANT_LEARNING_RATE,
  log: false,
  strict: false,
  modelFallback: false,
  shutdownTimeout: 20,
} as const;

/** Options of `serve` that are also settings, without limits and batch sizes. */
export const SERVE_SETTING_FLAGS: readonly Flag[] = withVariables([
  ...defineFlags({
    '--host <address>': 'address to listen on; default 127.0.0.1 (RUVLLM_HOST)',
    '--port <n>': 'port to listen on; default 8080, 0 is any free port (RUVLLM_PORT)',
    '--alias <name=model>...': 'additional name of a served model (repeatable)',
    '--adapter <name=path>...':
      'LoRA adapter of the first model, requested as MODEL:NAME: a GGUF file or a PEFT folder (repeatable)',
    '--adapter-folder <folder>...':
      'folder whose adapters admin keys may load over HTTP, besides the model cache (repeatable)',
    '--models-budget <size>': 'memory budget of loaded models; unloads the least recently used one',
    '--cors <origin>...': 'origin whose pages may call the server; requires API keys (repeatable)',
    '--route-config <file>': 'JSON file with routing candidates for the model "auto"; see docs/routing.md',
    '--mcp <name>...':
      'let requests use the tools of this MCP server of the settings file; see docs/mcp.md (repeatable)',
    '--mcp-urls': 'let requests name MCP servers by URL, on public addresses only',
    '--learning-rate <x>': `learning rate of the instant loop; default ${INSTANT_LEARNING_RATE}`,
    '--implicit-feedback':
      'treat repeated, rephrased and abandoned requests as feedback for the router, not for the model',
    '--no-learning': 'store feedback without learning from it; corrections are recalled all the same',
    '--no-corrections': 'do not recall corrections for near questions of the same user; the model learns them instead',
    '--audit-retention <duration>':
      'delete audit entries older than this, such as 12h, 30d or 52w; default: search them for 7 days, then archive them',
    '--audit-durability <batch|request>':
      'when an audit entry is on disk: within a second, or before the answer is complete; default batch',
    '--quality-sample': 'answer each request twice, the second time with at most 48 tokens, to estimate its quality',
    '--quality-peer <model>': 'served model that answers requests too, 48 tokens at most, to estimate their quality',
    '--backup-every <duration>': 'write a backup of memory and API keys this often, such as 6h or 1d; default: none',
    '--backup-keep <n>': 'number of backups to keep; default 7',
    '--backup-dir <folder>': "folder of the backups; default: backups in the user's data folder",
    '--strict': 'reject requests with unknown fields instead of ignoring and naming them',
    '--model-fallback': 'answer requests for unknown models with the first model instead of a 404',
    '--no-dashboard': 'serve only the API, without the dashboard at /',
    ...OTLP_FLAG,
    '--log': 'write a JSON line for every request to stderr',
    '--shutdown-timeout <seconds>': 'how long running requests may continue after a signal; default 20',
  }),
  ...KV_SHARED_FLAGS,
]);

/** Not a setting: secrets have no place in a settings file. */
export const API_KEY_FLAG: Flag = {
  name: '--api-key',
  value: 'key',
  isList: true,
  isSecret: true,
  variable: 'RUVLLM_SERVE_API_KEY',
  description: 'key that requests must send, besides those of ruvllm keys (repeatable; RUVLLM_SERVE_API_KEY)',
};

/** Options of `serve`. */
export const SERVE_FLAGS: readonly Flag[] = [
  ...SERVE_SETTING_FLAGS,
  COMMON_FLAGS.find(({ name }) => name === '--memory')!,
  EMBEDDER_FLAG,
  PROJECTION_FLAG,
  API_KEY_FLAG,
  FLEET_SECRET_FLAG,
  NATS_FLAG,
  ADVERTISE_FLAG,
  {
    name: '--no-model',
    value: null,
    description: 'start without a model if none is named; the dashboard offers models',
  },
  { name: '--no-memory', value: null, description: 'run without a memory: no audit log, no search' },
  ...LIMIT_FLAGS,
  ...BATCH_FLAGS,
  ...LOAD_FLAGS,
];

export const SERVE_NOTES =
  'Serves the models of the section "models" of the settings file as well; ruvllm config schema shows its format.';
