import type { ChatMessage } from '../../../runtime/lower-layers.ts';
import type { GenerationRequest } from '../../../runtime/requests/generation-request.ts';
import type { ServerLimits } from '../../limits.ts';
import { CHAT_FIELDS, toChatOptions } from '../chat-fields.ts';
import {
  booleanField,
  type Field,
  ignoredFields,
  integerField,
  type JsonSchema,
  listField,
  numberField,
  readFields,
  requiredField,
  schemaOf,
  stringField,
  type Values,
  fieldsByLimits,
} from '../fields.ts';
import { modelField } from '../openai/chat-request.ts';
import { isSamplingOpen, SAMPLING_FIELDS, toGenerateOptions } from '../openai/sampling-fields.ts';
import { REFLECTION_FIELDS, toReflection } from '../reflection-field.ts';
import { conflict } from '../spellings.ts';
import { maxTokensField, tokenLimitOf } from '../token-limit.ts';
import { unsupportedField } from '../unsupported.ts';
import { cacheControlField, hasCacheControl } from './cache-control.ts';
import { systemField } from './content-blocks.ts';
import { joinTurns, messageField } from './messages.ts';
import { NO_THINKING, outputConfigField, outputFormatField, thinkingField } from './output-config.ts';
import { toolChoiceField, toolField } from './tools.ts';

/** Fields of RuvLLM, with the same names as in OpenAI's format. */
const { stop: _stop, user: _user, logit_bias: _bias, top_k: _topK, ...OWN_SAMPLING } = SAMPLING_FIELDS;

export interface MessagesRequest {
  readonly generation: GenerationRequest;
  readonly isStream: boolean;
  /** Whether the answer contains the reasoning. */
  readonly hasThinking: boolean;
  /** Whether the client marked a part of the prompt for the cache. */
  readonly hasCacheControl: boolean;
}

const MAX_TOOLS = 128;
/** Settings of Anthropic's machines and billing. */
const IGNORED = ignoredFields(
  'service_tier',
  'inference_geo',
  'speed',
  'diagnostics',
  'user_profile_id',
  'workspace_id',
  'context_management',
);

/** As long as the names of users in the memory. */
const METADATA = { user_id: stringField(256) };
const metadataField: Field<Values<typeof METADATA>> = {
  schema: { ...schemaOf(METADATA), description: '`user_id`: whose memory and corrections apply' },
  read: (value, path) => readFields(value, METADATA, { path }),
};

/** Fields of counting and generating. */
const promptFields = fieldsByLimits((limits: ServerLimits) => ({
  model: modelField,
  messages: requiredField(listField(messageField, limits.maxMessages, 1)),
  system: systemField,
  tools: listField(toolField, MAX_TOOLS),
  tool_choice: toolChoiceField,
  output_config: outputConfigField,
  output_format: outputFormatField,
  thinking: thinkingField,
  chat_template_kwargs: CHAT_FIELDS.chat_template_kwargs,
  ...REFLECTION_FIELDS,
  cache_control: cacheControlField,
  mcp_servers: unsupportedField('a server of tools'),
  ...IGNORED,
}));

const messagesFields = fieldsByLimits((limits: ServerLimits) => ({
  ...OWN_SAMPLING,
  ...promptFields(limits),
  max_tokens: requiredField(maxTokensField),
  stop_sequences: listField(stringField(512, 1), 16),
  metadata: metadataField,
  stream: booleanField,
  temperature: numberField(0, 1),
  top_p: numberField(0, 1),
  top_k: integerField(0, 2 ** 31 - 1),
  container: unsupportedField('a container'),
}));

type PromptValues = Values<ReturnType<typeof promptFields>>;

function toPrompt({ messages, system }: PromptValues): readonly ChatMessage[] {
  const turns = joinTurns(messages.flat());
  return system === null ? turns : [{ role: 'system', content: system }, ...turns];
}

function toGeneration(fields: PromptValues, options: GenerationRequest['options']): GenerationRequest {
  const { choice = 'auto', canCallInParallel = true } = fields.tool_choice ?? {};
  const prompt = toPrompt(fields);
  const { role, toolCalls } = prompt.at(-1)!;
  const constraint = fields.output_config?.constraint ?? null;
  if (constraint !== null && fields.output_format !== null) throw conflict('output_config.format', 'output_format');
  return {
    model: fields.model ?? '',
    prompts: [prompt],
    numChoices: 1,
    options: {
      ...options,
      ...toChatOptions({ ...fields, reasoning_effort: (fields.thinking ?? NO_THINKING).wish }),
      ...toReflection(fields),
      // The answer continues a last message of the assistant.
      ...(role === 'assistant' && toolCalls === undefined ? { continueFinalMessage: true } : {}),
    },
    constraint: constraint ?? fields.output_format,
    tools: choice === 'none' ? [] : (fields.tools ?? []),
    toolChoice: choice,
    canCallInParallel,
    fieldNames: { maxTokens: 'max_tokens', grammar: 'output_config.format' },
  };
}

/** Reads the body of `POST /v1/messages`. */
export function readMessagesRequest(body: unknown, limits: ServerLimits): MessagesRequest {
  const fields = readFields(body, messagesFields(limits));
  const sampling = { ...fields, stop: fields.stop_sequences, user: fields.metadata?.user_id ?? null, logit_bias: null };
  const maxTokens = tokenLimitOf(fields, 'max_tokens')!.maxTokens;
  const isCached = hasCacheControl(body);
  const options = {
    ...toGenerateOptions(sampling),
    ...(maxTokens === null ? {} : { maxTokens }),
    ...(isCached ? { keepPrefix: true } : {}),
  };
  const generation = { ...toGeneration(fields, options), isSamplingOpen: isSamplingOpen(fields) };
  const { isShown: hasThinking } = fields.thinking ?? NO_THINKING;
  return { generation, isStream: fields.stream ?? false, hasThinking, hasCacheControl: isCached };
}

/** Reads the body of `POST /v1/messages/count_tokens`. */
export function readCountRequest(body: unknown, limits: ServerLimits): GenerationRequest {
  return toGeneration(readFields(body, promptFields(limits)), {});
}

/** The schemas of both bodies. */
export const messagesRequestSchema = (limits: ServerLimits): JsonSchema => schemaOf(messagesFields(limits));
export const countRequestSchema = (limits: ServerLimits): JsonSchema => schemaOf(promptFields(limits));
