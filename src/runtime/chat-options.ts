import type { ToolChoice } from '../chat/tools/types.ts';
import { RuvLLMError } from '../core/errors.ts';
import { booleanOption, choiceOption, type OptionReader, type OptionReaders } from '../core/options.ts';
import { showValue } from '../core/show-value.ts';
import { requirePlainJson } from './plain-json.ts';

/** A function that the model may call, in OpenAI's format. */
export interface ToolDefinition {
  readonly type: 'function';
  readonly function: {
    /** 1 to 128 letters, digits and `_ - . /`. */
    readonly name: string;
    readonly description?: string;
    /** JSON Schema of the arguments, of type object. Default: no arguments. */
    readonly parameters?: Readonly<Record<string, unknown>>;
    /** Whether to reject a schema that cannot be enforced, even if the model may answer without a call. Default false. */
    readonly strict?: boolean;
  };
}

const REASONING_WISHES = ['auto', 'none', 'on', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'] as const;

/** How much the model reasons before it answers. */
export type ReasoningWish = (typeof REASONING_WISHES)[number];

/** Options that require a prompt of messages. */
export interface ChatOptions {
  /** Functions that the model may call; `toolCalls` of the result has the calls. Default: none. */
  tools?: readonly ToolDefinition[];
  /** `required` or `{ name }`: the answer is a call; `none`: the model does not see the tools. Default `auto`. */
  toolChoice?: ToolChoice;
  /** Whether an answer may have several calls. Default true. */
  parallelToolCalls?: boolean;
  /** How much to reason; ignored by templates without that setting. Default `auto`. */
  reasoning?: ReasoningWish;
  /** Additional variables of the chat template: plain JSON data, no reserved names. Default: none. */
  templateVariables?: Readonly<Record<string, unknown>>;
  /** Whether the answer continues the last message, which must be the assistant's, instead of starting a turn. Default false. */
  continueFinalMessage?: boolean;
}

export interface ResolvedChatOptions {
  /** Empty if the choice is `none`. */
  readonly tools: readonly ToolDefinition[];
  readonly toolChoice: ToolChoice;
  readonly parallelToolCalls: boolean;
  readonly reasoning: ReasoningWish;
  readonly templateVariables: Readonly<Record<string, unknown>>;
  readonly continueFinalMessage: boolean;
}

export const NO_CHAT_OPTIONS: ResolvedChatOptions = Object.freeze({
  tools: [],
  toolChoice: 'auto',
  parallelToolCalls: true,
  reasoning: 'auto',
  templateVariables: {},
  continueFinalMessage: false,
});

const MAX_TOOLS = 256;
const TOOL_BOUNDS = { maxDepth: 64, maxValues: 200_000, maxChars: 2 ** 21 };
const MAX_VARIABLES = 64;
const VARIABLE_BOUNDS = { maxDepth: 16, maxValues: 4096, maxChars: 65_536 };
/** Other characters could end the marks that formats put around names. */
const TOOL_NAME = /^[\w./-]{1,128}$/;
const VARIABLE_NAME = /^[A-Za-z_]\w{0,63}$/;

/** Reserved: a caller could replace the conversation or move its end. */
const OWN_NAMES: ReadonlySet<string> = new Set(
  (
    'messages tools bos_token eos_token add_generation_prompt true True false False none None range namespace dict ' +
    'raise_exception strftime_now loop caller self varargs kwargs __proto__'
  ).split(' '),
);

function fail(option: string, reason: string): never {
  throw new RuvLLMError('invalid_option', `option "${option}" ${reason}`, { data: { option } });
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

function readTool(tool: unknown, where: string): ToolDefinition {
  if (!isObject(tool) || tool['type'] !== 'function' || !isObject(tool['function'])) {
    return fail('tools', `must hold { type: 'function', function: { name, … } }; ${where} does not`);
  }
  const { name, description, parameters, strict = false, ...rest } = tool['function'];
  const unknown = [...Object.keys(rest), ...Object.keys(tool).filter((key) => !['type', 'function'].includes(key))];
  if (unknown.length > 0) fail('tools', `has an unknown member "${unknown[0]!.slice(0, 80)}" in ${where}`);
  if (typeof name !== 'string' || !TOOL_NAME.test(name)) {
    return fail('tools', `requires names of 1 to 128 letters, digits and _ - . /; ${where} has ${showValue(name)}`);
  }
  if (description != null && typeof description !== 'string')
    fail('tools', `has a description that is not a string in ${where}`);
  if (parameters != null && !isObject(parameters)) fail('tools', `has parameters that are not a schema in ${where}`);
  const type = isObject(parameters) ? parameters['type'] : undefined;
  if (type !== undefined && type !== 'object') {
    fail('tools', `has parameters in ${where} of type ${showValue(type)}; arguments are always an object`);
  }
  if (strict !== null && typeof strict !== 'boolean') fail('tools', `has a "strict" that is not a boolean in ${where}`);
  return {
    type: 'function',
    function: {
      name,
      ...(typeof description === 'string' ? { description } : {}),
      ...(isObject(parameters) ? { parameters } : {}),
      strict: strict === true,
    },
  };
}

const toolsOption: OptionReader<readonly ToolDefinition[]> = (value, option) => {
  if (value === undefined) return [];
  if (!Array.isArray(value) || value.length > MAX_TOOLS) return fail(option, `must be a list of at most ${MAX_TOOLS}`);
  requirePlainJson(value, option, TOOL_BOUNDS);
  const tools = value.map((tool: unknown, index) => readTool(tool, `tools[${index}]`));
  const names = new Set<string>();
  for (const { function: one } of tools) {
    if (names.has(one.name)) fail(option, `has two tools "${one.name}"`);
    names.add(one.name);
  }
  return tools;
};

const toolChoiceOption: OptionReader<ToolChoice> = (value, option) => {
  if (value === undefined) return 'auto';
  if (value === 'auto' || value === 'none' || value === 'required') return value;
  if (isObject(value) && typeof value['name'] === 'string' && Object.keys(value).length === 1) {
    return { name: value['name'] };
  }
  return fail(option, "must be 'auto', 'none', 'required' or { name }");
};

const variablesOption: OptionReader<Readonly<Record<string, unknown>>> = (value, option) => {
  if (value === undefined) return {};
  if (!isObject(value)) return fail(option, 'must be an object');
  const names = Object.keys(value);
  if (names.length > MAX_VARIABLES) fail(option, `has ${names.length} names, the limit is ${MAX_VARIABLES}`);
  for (const name of names) {
    if (!VARIABLE_NAME.test(name)) fail(option, `has ${JSON.stringify(name.slice(0, 80))}, which is not a valid name`);
    if (OWN_NAMES.has(name)) fail(option, `must not set "${name}", which is reserved by the template`);
  }
  requirePlainJson(value, option, VARIABLE_BOUNDS);
  return value;
};

export const CHAT_READERS: OptionReaders<ResolvedChatOptions> = {
  tools: toolsOption,
  toolChoice: toolChoiceOption,
  parallelToolCalls: booleanOption(true),
  reasoning: choiceOption<ReasoningWish>('auto', REASONING_WISHES),
  templateVariables: variablesOption,
  continueFinalMessage: booleanOption(false),
};

/** Checks the choice against the tools, and drops the tools if the choice is `none`. */
export function settleTools<T extends ResolvedChatOptions>(options: T): T {
  const { tools, toolChoice } = options;
  if (toolChoice === 'auto') return options;
  if (toolChoice === 'none') return { ...options, tools: [] };
  if (tools.length === 0) fail('toolChoice', 'requires a call, but there are no tools');
  if (toolChoice === 'required' || tools.some((tool) => tool.function.name === toolChoice.name)) return options;
  return fail('toolChoice', `names ${JSON.stringify(toolChoice.name.slice(0, 128))}, which is not one of the tools`);
}

/** Rejects chat options of plain prompts, which have no chat template. */
export function requireNoChatOptions(options: ResolvedChatOptions): void {
  const { tools, reasoning, templateVariables, continueFinalMessage } = options;
  const option =
    tools.length > 0
      ? 'tools'
      : reasoning !== 'auto' && reasoning !== 'none'
        ? 'reasoning'
        : Object.keys(templateVariables).length > 0
          ? 'templateVariables'
          : continueFinalMessage
            ? 'continueFinalMessage'
            : null;
  if (option !== null) fail(option, 'requires a prompt of messages, because only a chat template shows it');
}
