import { defineFlags, type Flag, withVariables } from '../flags.ts';
import { GENERATE_FLAGS, LOGPROBS_FLAG } from '../generate-flags.ts';
import { LOAD_FLAGS } from '../load-flags.ts';
import { MCP_FLAGS } from '../mcp/mcp-flags.ts';
import { recallFlags } from '../memory/recall-flags.ts';

export const [SESSION_FLAG] = defineFlags({
  '--session <id> session': 'continue the session of this name, stored by --kv-spill; sends the prompt as with --raw',
}) as readonly [Flag];

const SYSTEM = { '--system <text>': 'system prompt' };

/** Options of `run`. */
export const RUN_FLAGS: readonly Flag[] = [
  ...GENERATE_FLAGS,
  LOGPROBS_FLAG,
  ...LOAD_FLAGS,
  ...defineFlags({
    '--chat': 'send the prompt as a chat message, even if the file has no chat template',
    '--raw': 'send the prompt unchanged, even if the file has a chat template',
    '--special': 'with --raw or --session: parse control tokens in the prompt',
    ...SYSTEM,
    '--image <file>...': 'PNG or JPEG before the prompt; requires --mmproj (repeatable)',
    '--adapter <path>': 'LoRA adapter: a GGUF file or a PEFT folder',
  }),
  SESSION_FLAG,
  ...MCP_FLAGS,
  ...recallFlags('--recall or --remember'),
  ...defineFlags({ '--verbose': 'print model, memory and timings to stderr' }),
];

/** Options of `chat` that are also settings. */
export const CHAT_SETTING_FLAGS: readonly Flag[] = withVariables(
  defineFlags({
    ...SYSTEM,
    '--history': 'keep input lines for later chats, encrypted (RUVLLM_HISTORY=on)',
  }),
);

/** Options of `chat`. */
export const CHAT_FLAGS: readonly Flag[] = [
  ...GENERATE_FLAGS,
  ...LOAD_FLAGS,
  ...CHAT_SETTING_FLAGS,
  ...MCP_FLAGS,
  ...defineFlags({
    '--learn': 'store answers in the memory and learn from /good, /bad and /correct',
  }),
  ...recallFlags('--learn, --recall or --remember'),
];
