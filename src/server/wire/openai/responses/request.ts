import type { ChatMessage } from '../../../../runtime/lower-layers.ts';
import type { GenerationRequest, ToolSpec } from '../../../../runtime/requests/generation-request.ts';
import type { ServerLimits } from '../../../limits.ts';
import type { StoredEntry } from '../../../stored/types.ts';
import { CHAT_FIELDS, effortField, toChatOptions } from '../../chat-fields.ts';
import {
  booleanField,
  choiceField,
  type Field,
  ignoredFields,
  ignoreField,
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
} from '../../fields.ts';
import { REFLECTION_FIELDS, toReflection } from '../../reflection-field.ts';
import { maxTokensField, tokenLimitOf } from '../../token-limit.ts';
import { unsupportedField } from '../../unsupported.ts';
import { metadataField, modelField } from '../chat-request.ts';
import { isSamplingOpen, SAMPLING_FIELDS, toGenerateOptions } from '../sampling-fields.ts';
import { toolChoiceField, toolField } from './function-tools.ts';
import { inputField } from './input-items.ts';
import { type Approvals, echoTool, findApprovals, type McpToolSpec } from './mcp-tools.ts';
import { textField } from './text-format.ts';

export interface ResponseRequest {
  /** Its prompt lacks the history. */
  readonly generation: GenerationRequest;
  readonly instructions: string | null;
  readonly input: readonly ChatMessage[];
  /** Null: it continues no response. */
  readonly previousId: string | null;
  /** Null: it belongs to no conversation. */
  readonly conversationId: string | null;
  readonly isStream: boolean;
  readonly isStored: boolean;
  readonly metadata: Readonly<Record<string, string>>;
  /** Fields of the request that the response repeats; the temperature and top-p may be learned. */
  readonly echo: object;
  /** MCP servers whose tools the model may call. */
  readonly mcpTools: readonly McpToolSpec[];
  /** The tool of an MCP server that must be called; null: see the generation's `toolChoice`. */
  readonly mcpChoice: { readonly label: string; readonly name: string } | null;
  /** The approval requests and responses of the input. */
  readonly approvals: Approvals;
}

/** The stored turns that a request continues. */
export interface ResponseHistory {
  readonly messages: readonly ChatMessage[];
  /** Owners of the earlier requests. */
  readonly owners: StoredEntry['owners'];
  /** The items of the earlier output. */
  readonly items: readonly unknown[];
}

const LOGPROBS = 'message.output_text.logprobs';
const IGNORED = ignoredFields(
  'service_tier',
  'safety_identifier',
  'prompt_cache_key',
  'prompt_cache_retention',
  'prompt_cache_options',
  'stream_options',
  'context_management',
);

/** Only `LOGPROBS` has an effect. */
const includeField: Field<readonly string[]> = listField(stringField(128), 16);

/** `reasoning`: the effort. There are no summaries, because the answer contains the reasoning itself. */
const reasoningField = {
  schema: { type: 'object', properties: { effort: effortField.schema } },
  read(value: unknown, path: string) {
    if (!isObject(value)) throw invalid(path, 'an object', value);
    const { effort = null, ...others } = value;
    for (const [name, item] of Object.entries(others)) {
      if (item !== null && item !== 'none' && item !== 'auto') ignoreField(`${path}.${name.slice(0, 80)}`);
    }
    return { effort: effort === null ? null : effortField.read(effort, `${path}.effort`) };
  },
};

/** The id of a conversation, or an object with it. */
const conversationField: Field<string> = {
  schema: { oneOf: [{ type: 'string' }, { type: 'object', properties: { id: { type: 'string' } }, required: ['id'] }] },
  read(value, path) {
    const id = stringField(128, 1);
    if (typeof value === 'string') return id.read(value, path);
    return readFields(value, { id: requiredField(id) }, { path }).id;
  },
};

const responseFields = fieldsByLimits((limits: ServerLimits) => ({
  ...SAMPLING_FIELDS,
  model: modelField,
  input: requiredField(inputField(limits.maxMessages)),
  instructions: stringField(2 ** 28),
  previous_response_id: stringField(128, 1),
  store: booleanField,
  stream: booleanField,
  max_output_tokens: maxTokensField,
  top_logprobs: integerField(0, 20),
  include: includeField,
  metadata: metadataField,
  text: textField,
  tools: listField(toolField, 128),
  tool_choice: toolChoiceField,
  parallel_tool_calls: booleanField,
  truncation: choiceField(['disabled', 'auto']),
  reasoning: reasoningField,
  chat_template_kwargs: CHAT_FIELDS.chat_template_kwargs,
  ...REFLECTION_FIELDS,
  background: unsupportedField('a response in the background'),
  conversation: conversationField,
  prompt: unsupportedField('a stored prompt'),
  max_tool_calls: unsupportedField('a limit on built-in tools'),
  moderation: unsupportedField('moderation'),
  ...IGNORED,
}));

/** Reads the body of `POST /v1/responses`. */
export function readResponseRequest(body: unknown, limits: ServerLimits): ResponseRequest {
  const fields = readFields(body, responseFields(limits));
  const { input, instructions, previous_response_id: previousId, conversation: conversationId } = fields;
  const maxTokens = tokenLimitOf(fields, 'max_output_tokens')?.maxTokens ?? null;
  if (previousId !== null && conversationId !== null) {
    throw invalid('conversation', "left out if 'previous_response_id' is given", conversationId);
  }
  const choice = fields.tool_choice ?? 'auto';
  const mcpChoice = typeof choice === 'object' && 'label' in choice ? choice : null;
  const tools = choice === 'none' ? [] : (fields.tools ?? []);
  const mcpTools = tools.filter((tool): tool is McpToolSpec => 'label' in tool);
  const hasLogprobs = fields.include?.includes(LOGPROBS) ?? false;
  const generation: GenerationRequest = {
    model: fields.model ?? '',
    prompts: [input],
    numChoices: 1,
    options: {
      ...toGenerateOptions(fields),
      ...toChatOptions({ ...fields, reasoning_effort: fields.reasoning?.effort ?? null }),
      ...toReflection(fields),
      ...(maxTokens === null ? {} : { maxTokens }),
      ...(hasLogprobs ? { topLogprobs: fields.top_logprobs ?? 0 } : {}),
    },
    isSamplingOpen: isSamplingOpen(fields),
    constraint: fields.text?.constraint ?? null,
    tools: tools.filter((tool): tool is ToolSpec => !('label' in tool)),
    toolChoice: typeof choice === 'object' && 'label' in choice ? 'auto' : choice,
    canCallInParallel: fields.parallel_tool_calls ?? true,
    fieldNames: { maxTokens: 'max_output_tokens', reasoning: 'reasoning.effort', grammar: 'text.format' },
  };
  const raw = body as Readonly<Record<string, unknown>>;
  const echo = {
    background: false,
    ...(conversationId === null ? {} : { conversation: { id: conversationId } }),
    instructions,
    max_output_tokens: maxTokens,
    max_tool_calls: null,
    metadata: fields.metadata ?? {},
    parallel_tool_calls: generation.canCallInParallel,
    previous_response_id: previousId,
    reasoning: { effort: fields.reasoning?.effort ?? null, summary: null },
    service_tier: 'default',
    store: fields.store ?? true,
    text: raw['text'] ?? { format: { type: 'text' } },
    tool_choice: raw['tool_choice'] ?? 'auto',
    tools: ((raw['tools'] ?? []) as readonly unknown[]).map(echoTool),
    top_logprobs: fields.top_logprobs ?? 0,
    truncation: 'disabled',
    ...(fields.user === null ? {} : { user: fields.user }),
  };
  return {
    generation,
    instructions,
    input,
    previousId,
    conversationId,
    isStream: fields.stream ?? false,
    isStored: fields.store ?? true,
    metadata: fields.metadata ?? {},
    echo,
    mcpTools,
    mcpChoice,
    approvals: findApprovals(Array.isArray(raw['input']) ? (raw['input'] as readonly unknown[]) : []),
  };
}

/** The turns of a request with its history, without instructions, which the next response continues. */
export function turnsOf(
  { input }: ResponseRequest,
  history: ResponseHistory,
  limits: ServerLimits,
): readonly ChatMessage[] {
  const messages = [...history.messages, ...input];
  if (messages.length <= limits.maxMessages) return messages;
  throw invalid('input', `at most ${limits.maxMessages} messages, including the earlier ones`, messages);
}

/** The prompt of a request: its instructions, and the turns. */
export function promptOf({ instructions }: ResponseRequest, turns: readonly ChatMessage[]): readonly ChatMessage[] {
  return instructions === null ? turns : [{ role: 'system', content: instructions }, ...turns];
}

export const responseRequestSchema = (limits: ServerLimits): JsonSchema => schemaOf(responseFields(limits));
