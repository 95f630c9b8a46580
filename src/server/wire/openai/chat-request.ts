import type { GenerationRequest } from '../../../runtime/requests/generation-request.ts';
import type { ServerLimits } from '../../limits.ts';
import { CHAT_FIELDS, toChatOptions } from '../chat-fields.ts';
import {
  booleanField,
  countField,
  type Field,
  ignoredFields,
  integerField,
  invalid,
  isObject,
  type JsonSchema,
  listField,
  readFields,
  requiredField,
  schemaOf,
  stringField,
  fieldsByLimits,
} from '../fields.ts';
import { REFLECTION_FIELDS, toReflection } from '../reflection-field.ts';
import { maxTokensField, tokenLimitOf } from '../token-limit.ts';
import { unsupportedField } from '../unsupported.ts';
import { isPrefix, messagesField } from './messages.ts';
import { CONSTRAINT_FIELDS, constraintOf } from './response-format.ts';
import { predictionField } from './prediction.ts';
import { isSamplingOpen, SAMPLING_FIELDS, toGenerateOptions } from './sampling-fields.ts';
import { streamOptionsField } from './stream-options.ts';
import { functionCallField, functionField, toolChoiceField, toolField, toolsOf } from './tools.ts';

export interface ChatRequest {
  readonly generation: GenerationRequest;
  readonly isStream: boolean;
  readonly hasUsageChunk: boolean;
  /** Whether the request has `functions`, so that the answer has `function_call`. */
  readonly isOlderForm: boolean;
  readonly isStored: boolean;
  /** Of a stored completion. */
  readonly metadata: Readonly<Record<string, string>>;
}

export const MAX_TOOLS = 128;
/** The model's id or alias; empty or absent: the only model. */
export const modelField: Field<string> = {
  ...stringField(512),
  schema: { type: 'string', maxLength: 512, description: 'may be left out if one model is served' },
};

export const metadataField: Field<Readonly<Record<string, string>>> = {
  schema: { type: 'object', maxProperties: 16, additionalProperties: { type: 'string', maxLength: 512 } },
  read(value, path) {
    const isText = ([key, text]: [string, unknown]): boolean =>
      key.length <= 64 && typeof text === 'string' && text.length <= 512;
    if (!isObject(value) || Object.keys(value).length > 16 || !Object.entries(value).every(isText)) {
      throw invalid(path, 'an object of at most 16 strings of up to 512 characters, with keys of up to 64', value);
    }
    return value as Readonly<Record<string, string>>;
  },
};

/** Settings of OpenAI's storage, billing, caches and speed. */
export const OPENAI_IGNORED = {
  metadata: { ...metadataField, schema: { ...metadataField.schema, description: 'accepted; has no effect' } },
  ...ignoredFields(
    'store',
    'service_tier',
    'safety_identifier',
    'prompt_cache_key',
    'prompt_cache_retention',
    'prompt_cache_options',
    'verbosity',
  ),
};

/** Only text is supported. */
const modalitiesField: Field<null> = {
  schema: { type: 'array', items: { type: 'string', enum: ['text'] } },
  read(value, path) {
    if (Array.isArray(value) && value.every((modality) => modality === 'text')) return null;
    throw invalid(path, "['text']", value);
  },
};

const chatFields = fieldsByLimits((limits: ServerLimits) => ({
  model: modelField,
  messages: requiredField(messagesField(limits.maxMessages)),
  max_tokens: maxTokensField,
  max_completion_tokens: maxTokensField,
  n_predict: maxTokensField,
  n: countField(1, limits.maxChoices),
  logprobs: booleanField,
  top_logprobs: integerField(0, 20),
  stream: booleanField,
  stream_options: streamOptionsField,
  ...CONSTRAINT_FIELDS,
  tools: listField(toolField, MAX_TOOLS),
  tool_choice: toolChoiceField,
  parallel_tool_calls: booleanField,
  modalities: modalitiesField,
  audio: unsupportedField('audio'),
  functions: listField(functionField, MAX_TOOLS),
  function_call: functionCallField,
  continue_final_message: booleanField,
  prediction: predictionField,
  web_search_options: unsupportedField('web search'),
  moderation: unsupportedField('moderation'),
  ...SAMPLING_FIELDS,
  ...CHAT_FIELDS,
  ...REFLECTION_FIELDS,
  ...OPENAI_IGNORED,
  store: booleanField,
  metadata: metadataField,
}));

/** Reads the body of `POST /v1/chat/completions`. */
export function readChatRequest(body: unknown, limits: ServerLimits): ChatRequest {
  const fields = readFields(body, chatFields(limits));
  const limit = tokenLimitOf(fields, 'max_completion_tokens', 'max_tokens', 'n_predict');
  if (fields.top_logprobs !== null && fields.logprobs !== true) {
    throw invalid('top_logprobs', "left out unless 'logprobs' is true", fields.top_logprobs);
  }
  if (fields.stream_options !== null && fields.stream !== true) {
    throw invalid('stream_options', "left out unless 'stream' is true", {});
  }
  const { constraint, fieldNames } = constraintOf(fields);
  const { tools, toolChoice, isOlderForm } = toolsOf(fields);
  const isContinued = fields.continue_final_message ?? isPrefix((body as { messages: unknown[] }).messages.at(-1));
  const generation: GenerationRequest = {
    model: fields.model ?? '',
    prompts: [fields.messages],
    numChoices: fields.n ?? 1,
    options: {
      ...toGenerateOptions(fields),
      ...toChatOptions(fields),
      ...toReflection(fields),
      ...(limit?.maxTokens == null ? {} : { maxTokens: limit.maxTokens }),
      ...(isContinued ? { continueFinalMessage: true } : {}),
      ...(fields.prediction === null ? {} : { prediction: fields.prediction }),
      ...(fields.logprobs === true ? { topLogprobs: fields.top_logprobs ?? 0 } : {}),
    },
    isSamplingOpen: isSamplingOpen(fields),
    constraint,
    tools,
    toolChoice,
    // The older form has room for one call.
    canCallInParallel: !isOlderForm && (fields.parallel_tool_calls ?? true),
    fieldNames: { maxTokens: limit?.name ?? 'max_tokens', ...fieldNames },
  };
  return {
    generation,
    isStream: fields.stream ?? false,
    hasUsageChunk: fields.stream_options?.hasUsage ?? false,
    isOlderForm,
    isStored: fields.store ?? false,
    metadata: fields.metadata ?? {},
  };
}

export const chatRequestSchema = (limits: ServerLimits): JsonSchema => schemaOf(chatFields(limits));
