import type { GenerationRequest } from '../../../runtime/requests/generation-request.ts';
import type { ServerLimits } from '../../limits.ts';
import { CHAT_FIELDS, toChatOptions } from '../chat-fields.ts';
import {
  booleanField,
  countField,
  type Field,
  integerField,
  invalid,
  type JsonSchema,
  listField,
  readFields,
  requiredField,
  schemaOf,
  stringField,
} from '../fields.ts';
import { refusedField } from '../unsupported.ts';
import { messageField } from './messages.ts';
import { constraintFieldOf, constraintOf, responseFormatField } from './response-format.ts';
import { isSamplingOpen, SAMPLING_FIELDS, toGenerateOptions } from './sampling-fields.ts';
import { streamOptionsField } from './stream-options.ts';
import { toolChoiceField, toolField } from './tools.ts';

/** A chat request: what to generate, and how to answer. */
export interface ChatRequest {
  readonly generation: GenerationRequest;
  readonly isStream: boolean;
  readonly hasUsageChunk: boolean;
}

const MAX_GRAMMAR = 65_536;
export const MAX_TOOLS = 128;
export const MAX_MODEL_NAME = 512;
export const maxTokensField = integerField(1, 2 ** 31 - 1);

/** Known, without an effect on the answer here: they are about OpenAI's own storage, billing, caches and speed. */
export const IGNORED_FIELDS = [
  'metadata',
  'store',
  'service_tier',
  'safety_identifier',
  'prompt_cache_key',
  'prompt_cache_retention',
  'prompt_cache_options',
  'prediction',
  'verbosity',
] as const;

/** Only their neutral value is accepted: the rest would be pretended. */
const modalitiesField: Field<true> = {
  schema: { type: 'array', items: { type: 'string', enum: ['text'] } },
  read(value, path) {
    if (Array.isArray(value) && value.every((one) => one === 'text')) return true;
    throw invalid(path, "['text']", value);
  },
};

function chatFields(limits: ServerLimits) {
  return {
    model: requiredField(stringField(MAX_MODEL_NAME, 1)),
    messages: requiredField(listField(messageField, limits.maxMessages, 1)),
    max_tokens: maxTokensField,
    max_completion_tokens: maxTokensField,
    n: countField(1, limits.maxChoices),
    logprobs: booleanField,
    top_logprobs: integerField(0, 20),
    stream: booleanField,
    stream_options: streamOptionsField,
    response_format: responseFormatField,
    grammar: stringField(MAX_GRAMMAR, 1),
    regex: stringField(MAX_GRAMMAR, 1),
    tools: listField(toolField, MAX_TOOLS),
    tool_choice: toolChoiceField,
    parallel_tool_calls: booleanField,
    modalities: modalitiesField,
    audio: refusedField('audio'),
    functions: refusedField("the older form of 'tools'"),
    function_call: refusedField("the older form of 'tool_choice'"),
    web_search_options: refusedField('searching the web'),
    moderation: refusedField('moderation'),
    ...SAMPLING_FIELDS,
    ...CHAT_FIELDS,
  };
}

/** Reads the body of `POST /v1/chat/completions`. */
export function readChatRequest(body: unknown, limits: ServerLimits): ChatRequest {
  const given = readFields(body, chatFields(limits), { ignored: IGNORED_FIELDS });
  const maxTokens = given.max_completion_tokens ?? given.max_tokens;
  if (given.top_logprobs !== null && given.logprobs !== true) {
    throw invalid('top_logprobs', "left out unless 'logprobs' is true", given.top_logprobs);
  }
  if (given.stream_options !== null && given.stream !== true) {
    throw invalid('stream_options', "left out unless 'stream' is true", {});
  }
  const constraint = constraintOf(given);
  const generation: GenerationRequest = {
    model: given.model,
    prompts: [given.messages],
    numChoices: given.n ?? 1,
    options: {
      ...toGenerateOptions(given),
      ...toChatOptions(given),
      ...(maxTokens === null ? {} : { maxTokens }),
      ...(given.logprobs === true ? { topLogprobs: given.top_logprobs ?? 0 } : {}),
    },
    isSamplingOpen: isSamplingOpen(given),
    constraint,
    tools: given.tool_choice === 'none' ? [] : (given.tools ?? []),
    toolChoice: given.tool_choice ?? 'auto',
    canCallInParallel: given.parallel_tool_calls ?? true,
    fieldNames: {
      maxTokens: given.max_completion_tokens === null ? 'max_tokens' : 'max_completion_tokens',
      ...constraintFieldOf(constraint),
    },
  };
  return { generation, isStream: given.stream ?? false, hasUsageChunk: given.stream_options?.hasUsage ?? false };
}

/** The documentation of the body. */
export const chatRequestSchema = (limits: ServerLimits): JsonSchema => schemaOf(chatFields(limits));
