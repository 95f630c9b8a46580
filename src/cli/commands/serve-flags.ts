import { INSTANT_LEARNING_RATE } from '../../learning/micro-lora/instant-learning-rate.ts';
import { COMMON_FLAGS } from '../config/common-flags.ts';
import { type Flag, withVariables } from '../flags.ts';
import { LOAD_FLAGS } from '../load-flags.ts';
import { EMBEDDER_FLAG } from '../memory/embedder-flag.ts';
import { readInteger, readNumber, readSeconds, readSize } from '../values.ts';

/** Limits on requests. */
export const LIMIT_FLAGS: readonly Flag[] = withVariables([
  {
    name: '--max-body',
    value: 'size',
    option: 'maxBodyBytes',
    read: readSize,
    description: 'maximum size of a request body; default 4MiB',
  },
  {
    name: '--max-choices',
    value: 'n',
    option: 'maxChoices',
    read: readInteger,
    description: 'maximum number of choices per request; default 16',
  },
  {
    name: '--max-requests',
    value: 'n',
    option: 'maxRequests',
    read: readInteger,
    description: 'maximum number of concurrent generation requests; default 256',
  },
  {
    name: '--max-requests-per-tenant',
    value: 'n',
    option: 'maxRequestsPerTenant',
    read: readInteger,
    description: 'maximum number of concurrent generation requests per tenant; default 64',
  },
  {
    name: '--requests-per-minute',
    value: 'n',
    option: 'requestsPerMinute',
    read: readNumber,
    description: 'rate limit per tenant; default 6000',
  },
]);

/** Defaults by setting key. */
export const SERVE_DEFAULTS = {
  host: '127.0.0.1',
  port: 8080,
  alias: [],
  adapter: [],
  cors: [],
  learning: true,
  dashboard: true,
  learningRate: INSTANT_LEARNING_RATE,
  log: false,
  shutdownTimeout: 20,
} as const;

/** Options of `serve` that are also settings, without the limits. */
export const SERVE_SETTING_FLAGS: readonly Flag[] = withVariables([
  { name: '--host', value: 'address', description: 'address to listen on; default 127.0.0.1 (RUVLLM_HOST)' },
  {
    name: '--port',
    value: 'n',
    read: readInteger,
    description: 'port to listen on; default 8080, 0 is any free port (RUVLLM_PORT)',
  },
  {
    name: '--alias',
    value: 'name=model',
    isList: true,
    description: 'additional name of a served model (repeatable)',
  },
  {
    name: '--adapter',
    value: 'name=path',
    isList: true,
    description: 'LoRA adapter of the first model, requested as MODEL:NAME: a GGUF file or a PEFT folder (repeatable)',
  },
  {
    name: '--models-budget',
    value: 'size',
    read: readSize,
    description: 'memory budget of loaded models; unloads the least recently used one',
  },
  { name: '--cors', value: 'origin', isList: true, description: 'origin whose pages may call the server (repeatable)' },
  {
    name: '--route-config',
    value: 'file',
    description: 'JSON file with routing candidates for the model "auto"; see docs/routing.md',
  },
  {
    name: '--learning-rate',
    value: 'n',
    read: readNumber,
    description: `learning rate of the instant loop; default ${INSTANT_LEARNING_RATE}`,
  },
  {
    name: '--implicit-feedback',
    value: null,
    description: 'treat repeated, rephrased and abandoned requests as feedback for the router, not for the model',
  },
  { name: '--no-learning', value: null, description: 'store feedback without learning from it' },
  { name: '--no-dashboard', value: null, description: 'serve only the API, without the dashboard at /' },
  { name: '--log', value: null, description: 'write a JSON line for every request to stderr' },
  {
    name: '--shutdown-timeout',
    value: 'seconds',
    read: readSeconds,
    description: 'how long running requests may continue after a signal; default 20',
  },
]);

/** Options of `serve`. */
export const SERVE_FLAGS: readonly Flag[] = [
  ...SERVE_SETTING_FLAGS,
  COMMON_FLAGS.find(({ name }) => name === '--memory')!,
  EMBEDDER_FLAG,
  { name: '--no-memory', value: null, description: 'run without a memory: no audit log, no search' },
  ...LIMIT_FLAGS,
  ...LOAD_FLAGS,
];
