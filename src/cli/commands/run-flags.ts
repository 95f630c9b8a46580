import { MEMORY_DESCRIPTION } from '../config/common-flags.ts';
import { type Flag, withVariables } from '../flags.ts';
import { GENERATE_FLAGS, LOGPROBS_FLAG } from '../generate-flags.ts';
import { LOAD_FLAGS } from '../load-flags.ts';
import { readText } from '../values.ts';

const SYSTEM: Flag = { name: '--system', value: 'text', read: readText, description: 'system prompt' };

export const SESSION_FLAG: Flag = {
  name: '--session',
  value: 'id',
  option: 'session',
  read: readText,
  description: 'continue the session of this name, stored by --kv-spill; sends the prompt as with --raw',
};

export const ADAPTER_FLAG: Flag = {
  name: '--adapter',
  value: 'path',
  read: readText,
  description: 'LoRA adapter: a GGUF file or a PEFT folder',
};

/** Options of `run`. */
export const RUN_FLAGS: readonly Flag[] = [
  ...GENERATE_FLAGS,
  LOGPROBS_FLAG,
  ...LOAD_FLAGS,
  {
    name: '--chat',
    value: null,
    description: 'send the prompt as a chat message, even if the file has no chat template',
  },
  { name: '--raw', value: null, description: 'send the prompt unchanged, even if the file has a chat template' },
  {
    name: '--special',
    value: null,
    description: 'with --raw or --session: parse control tokens in the prompt',
  },
  SYSTEM,
  ADAPTER_FLAG,
  SESSION_FLAG,
  { name: '--verbose', value: null, description: 'print model, memory and timings to stderr' },
];

/** Options of `chat` that are also settings. */
export const CHAT_SETTING_FLAGS: readonly Flag[] = withVariables([
  SYSTEM,
  {
    name: '--history',
    value: null,
    description: 'keep input lines for later chats, encrypted (RUVLLM_HISTORY=on)',
  },
]);

/** Options of `chat`. */
export const CHAT_FLAGS: readonly Flag[] = [
  ...GENERATE_FLAGS,
  ...LOAD_FLAGS,
  ...CHAT_SETTING_FLAGS,
  { name: '--learn', value: null, description: 'store answers in the memory and learn from /good, /bad and /correct' },
  { name: '--memory', value: 'place', description: `${MEMORY_DESCRIPTION} (with --learn)` },
];
