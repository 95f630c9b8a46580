import { type Flag, withVariables } from '../flags.ts';
import { GENERATE_FLAGS, LOGPROBS_FLAG } from '../generate-flags.ts';
import { LOAD_FLAGS } from '../load-flags.ts';
import { readText } from '../values.ts';

const SYSTEM: Flag = { name: '--system', value: 'text', read: readText, description: 'instructions for the model' };

export const SESSION_FLAG: Flag = {
  name: '--session',
  value: 'id',
  option: 'session',
  read: readText,
  description: 'go on with the conversation of this name, kept by --kv-spill; the prompt is taken as with --raw',
};

export const ADAPTER_FLAG: Flag = {
  name: '--adapter',
  value: 'path',
  read: readText,
  description: 'a LoRA to answer with: a GGUF file, or a folder of PEFT',
};

/** Options of `run`. */
export const RUN_FLAGS: readonly Flag[] = [
  ...GENERATE_FLAGS,
  LOGPROBS_FLAG,
  ...LOAD_FLAGS,
  { name: '--chat', value: null, description: 'ask as a user in a chat, also when the file has no chat template' },
  { name: '--raw', value: null, description: 'give the prompt as it is, also when the file has a chat template' },
  {
    name: '--special',
    value: null,
    description: 'with --raw or --session: spellings of control tokens become those tokens',
  },
  SYSTEM,
  ADAPTER_FLAG,
  SESSION_FLAG,
  { name: '--verbose', value: null, description: 'show model, memory and timings on stderr' },
];

/** Options of `chat` that a file may set. */
export const CHAT_OWN_FLAGS: readonly Flag[] = withVariables([
  SYSTEM,
  {
    name: '--history',
    value: null,
    description: 'keep what is typed for the next chat, sealed, in a file of this user (RUVLLM_HISTORY=on)',
  },
]);

/** Options of `chat`. */
export const CHAT_FLAGS: readonly Flag[] = [
  ...GENERATE_FLAGS,
  ...LOAD_FLAGS,
  ...CHAT_OWN_FLAGS,
  { name: '--learn', value: null, description: 'keep answers in the memory, and learn from /good, /bad and /correct' },
  {
    name: '--memory',
    value: 'place',
    description: 'with --learn: a folder, or postgres://…; default: that of this user',
  },
];
