import { RuvLLMError } from '../../src/core/errors.ts';
import { resolveServerLimits } from '../../src/server/limits.ts';
import { readMessagesRequest } from '../../src/server/wire/anthropic/messages-request.ts';
import { readChatRequest } from '../../src/server/wire/openai/chat-request.ts';
import { readCompletionRequest } from '../../src/server/wire/openai/completion-request.ts';
import { readConversation } from '../../src/server/wire/openai/conversation.ts';
import { decode, encode, type FuzzTarget } from '../target.ts';

const LIMITS = resolveServerLimits();
const READERS = [readChatRequest, readCompletionRequest, readMessagesRequest, readConversation] as const;

/** Requests of all formats: the same body is given to every reader. */
export const wireTarget: FuzzTarget = {
  name: 'wire',
  words: ['"messages":[{"role":"user","content":"a"}]', '"role":"tool"', '"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]', '"tools":[{"type":"function","function":{"name":"f"}}]', '"response_format":{"type":"json_object"}', '"stop":["a"]', '"logit_bias":{"1":-100}', '"stream":true', '"max_tokens":1', '"temperature":0', '"prompt":[[1,2]]', '"content":[{"type":"text","text":"a"}]', '"image_url"', '"adapter":[{"name":"a","scale":1}]', '"memory":{"k":1}', 'null', '-1', '1e400', '"__proto__":{}'], // prettier-ignore
  seeds: () => [
    encode(
      '{"model":"m","messages":[{"role":"system","content":"a"},{"role":"user","content":[{"type":"text","text":"b"}]}],"max_tokens":4,"temperature":0.5,"stop":["x"],"stream":true,"stream_options":{"include_usage":true}}',
    ),
    encode(
      '{"model":"m","messages":[{"role":"user","content":"a"},{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c","content":"1"}],"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}],"tool_choice":"auto"}',
    ),
    encode('{"model":"m","prompt":["a","b"],"n":2,"logprobs":1,"echo":true,"suffix":"x","logit_bias":{"3":1}}'),
    encode('{"items":[{"type":"message","role":"user","content":"a"}],"metadata":{"a":"b"}}'),
  ],
  run(bytes) {
    let body: unknown;
    try {
      body = JSON.parse(decode(bytes));
    } catch (error) {
      throw new RuvLLMError('invalid_option', 'not JSON', { cause: error });
    }
    for (const read of READERS) {
      try {
        read(body, LIMITS);
      } catch (error) {
        if (!(error instanceof RuvLLMError) || error.code === 'internal') throw error;
      }
    }
  },
};
