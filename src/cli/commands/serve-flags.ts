import { INSTANT_LEARNING_RATE } from '../../learning/micro-lora/instant-learning-rate.ts';
import { COMMON_FLAGS } from '../config/common-flags.ts';
import { type Flag, withVariables } from '../flags.ts';
import { LOAD_FLAGS } from '../load-flags.ts';
import { EMBEDDER_FLAG } from '../memory/embedder-flag.ts';
import { readInteger, readNumber, readSeconds, readSize } from '../values.ts';

/** Bounds on what clients may ask for, by the server's names. */
export const LIMIT_FLAGS: readonly Flag[] = withVariables([
  {
    name: '--max-body',
    value: 'size',
    option: 'maxBodyBytes',
    read: readSize,
    description: 'most bytes of a request; default 4MiB',
  },
  {
    name: '--max-choices',
    value: 'n',
    option: 'maxChoices',
    read: readInteger,
    description: 'most answers of a request; default 16',
  },
  {
    name: '--max-requests',
    value: 'n',
    option: 'maxRequests',
    read: readInteger,
    description: 'most requests that generate at a time; default 256',
  },
  {
    name: '--max-requests-per-tenant',
    value: 'n',
    option: 'maxRequestsPerTenant',
    read: readInteger,
    description: 'the same for one tenant; default 64',
  },
  {
    name: '--requests-per-minute',
    value: 'n',
    option: 'requestsPerMinute',
    read: readNumber,
    description: 'how often a tenant may ask; default 6000',
  },
]);

/** What holds where nobody says otherwise, by the names of the settings. */
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

/** Options of `serve` that a file may set; the limits stand by themselves. */
export const SERVE_OWN_FLAGS: readonly Flag[] = withVariables([
  { name: '--host', value: 'address', description: 'where to listen; default 127.0.0.1 (RUVLLM_HOST)' },
  { name: '--port', value: 'n', read: readInteger, description: 'default 8080; 0 is any (RUVLLM_PORT)' },
  {
    name: '--alias',
    value: 'name=model',
    isList: true,
    description: 'another name for one of the models (repeatable)',
  },
  {
    name: '--adapter',
    value: 'name=path',
    isList: true,
    description: 'a LoRA for the first model, asked for as MODEL:NAME: GGUF, or a folder of PEFT (repeatable)',
  },
  {
    name: '--models-budget',
    value: 'size',
    read: readSize,
    description: 'most memory of loaded models; the one not used for longest is unloaded',
  },
  { name: '--cors', value: 'origin', isList: true, description: 'a site whose pages may call the server (repeatable)' },
  {
    name: '--route-config',
    value: 'file',
    description: 'JSON: who may answer requests for the model "auto"; docs/routing.md has an example',
  },
  {
    name: '--learning-rate',
    value: 'n',
    read: readNumber,
    description: `how far one feedback moves the model; default ${INSTANT_LEARNING_RATE}`,
  },
  {
    name: '--implicit-feedback',
    value: null,
    description:
      'asking again, asking differently or leaving says something of an answer: to the router, not to the model',
  },
  { name: '--no-learning', value: null, description: 'feedback is kept, and changes no answer' },
  { name: '--no-dashboard', value: null, description: 'no page at /, only the API' },
  { name: '--log', value: null, description: 'write a JSON line for every request to stderr' },
  {
    name: '--shutdown-timeout',
    value: 'seconds',
    read: readSeconds,
    description: 'how long requests may go on after a signal; default 20',
  },
]);

/** Options of `serve`. */
export const SERVE_FLAGS: readonly Flag[] = [
  ...SERVE_OWN_FLAGS,
  COMMON_FLAGS.find(({ name }) => name === '--memory')!,
  EMBEDDER_FLAG,
  { name: '--no-memory', value: null, description: 'remember nothing: no audit log, no search' },
  ...LIMIT_FLAGS,
  ...LOAD_FLAGS,
];
