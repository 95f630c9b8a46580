import type { ChatMessage } from '../../chat/types.ts';
import { RuvLLMError } from '../../core/errors.ts';
import { instanceOption, optional, resolveOptions } from '../../core/options.ts';
import type { GenerateOptions } from '../generate-options.ts';
import type { GenerateChunk, GenerateResult, Usage } from '../generation-types.ts';
import { isChat } from '../prompt.ts';
import { type PromptInput, readPrompt } from '../read-prompt.ts';
import { type FunctionTool, type RunnableTool, toRunnable, type ToolOutcome } from './runnable-tool.ts';
import { TOOL_LIMIT_READERS, type ToolLimits } from './tool-limits.ts';
import {
  type FinishedToolCall,
  type ReuseResult,
  runToolLoop,
  type ToolCallRequest,
  type ToolEvent,
} from './tool-loop.ts';

/** Options of `runTools`: those of `generate`, and the tools. */
export interface RunToolsOptions
  extends Omit<GenerateOptions, 'tools' | 'continueFinalMessage' | 'fill'>, Partial<ToolLimits> {
  messages: readonly ChatMessage[];
  /** Functions of the program, and tools of MCP servers. */
  tools: readonly (FunctionTool | RunnableTool)[];
  /** Asked before each call of a tool whose consent is `ask`. Default: such calls are refused, and the model is told. */
  approve?: (request: ToolCallRequest) => boolean | Promise<boolean>;
}

/** A call that `runTools` made. */
export interface ToolCallReport {
  readonly name: string;
  /** Null: a function of the program. */
  readonly server: string | null;
  readonly arguments: Readonly<Record<string, unknown>>;
  readonly result: string;
  readonly outcome: ToolOutcome;
  readonly durationMs: number;
  /** Milliseconds since the call whose result was used again; absent: the tool was called. */
  readonly ageMs?: number;
}

/** The last answer; `usage` adds up all rounds. */
export interface RunToolsResult extends GenerateResult {
  /** The turns after `messages`: calls, results and the answer. Add them to continue the conversation. */
  readonly messages: readonly ChatMessage[];
  readonly calls: readonly ToolCallReport[];
  readonly numRounds: number;
}

export interface RunToolsContext {
  generate(prompt: PromptInput, options: GenerateOptions): AsyncIterable<GenerateChunk>;
  now(): number;
  /** Writes the audit entry of a call. */
  record(finished: FinishedToolCall): void;
  readonly reuse: ReuseResult | null;
}

const isFunction = (value: unknown): value is NonNullable<RunToolsOptions['approve']> => typeof value === 'function';

function readTools(tools: unknown): readonly RunnableTool[] {
  if (!Array.isArray(tools)) throw new RuvLLMError('invalid_option', 'option "tools" must be a list', { data: { option: 'tools' } }); // prettier-ignore
  return (tools as RunToolsOptions['tools']).map((tool, index) => {
    if (typeof tool?.call !== 'function') {
      throw new RuvLLMError('invalid_option', `option "tools" requires a function "call"; tools[${index}] has none`, {
        data: { option: 'tools' },
      });
    }
    return 'definition' in tool ? tool : toRunnable(tool);
  });
}

/** The events of a conversation with tools; the last one is the answer. */
export async function* streamTools(
  context: RunToolsContext,
  { messages: given, tools: givenTools, approve, maxRounds, maxCalls, maxRepeats, ...options }: RunToolsOptions,
): AsyncGenerator<ToolEvent, void, undefined> {
  const messages = readPrompt(given);
  if (!isChat(messages)) throw new RuvLLMError('invalid_option', 'runTools requires messages', { data: { option: 'messages' } }); // prettier-ignore
  const tools = readTools(givenTools);
  const definitions = tools.map(({ definition }) => definition);
  const wanted = { maxRounds, maxCalls, maxRepeats };
  const limits = resolveOptions<ToolLimits>('runTools', wanted, TOOL_LIMIT_READERS);
  const ask = optional(instanceOption('a function', isFunction))(approve, 'approve');
  const { toolChoice, ...later } = options;
  yield* runToolLoop({
    messages: messages as readonly ChatMessage[],
    tools,
    limits,
    signal: options.signal ?? new AbortController().signal,
    now: context.now,
    // A call that is required in every round would never end.
    generate: (turns, round) =>
      context.generate(turns, {
        ...later,
        ...(toolChoice === undefined || (round > 0 && toolChoice !== 'none') ? {} : { toolChoice }),
        tools: definitions,
      }),
    approve: async (request, { consent }) => {
      if (consent === 'allow') return 'yes';
      return ask !== null && (await ask(request)) === true ? 'yes' : 'no';
    },
    record: context.record,
    reuse: context.reuse,
  });
}

/** Reads the events to their end. */
export async function collectTools(events: AsyncIterable<ToolEvent>): Promise<RunToolsResult> {
  const calls: ToolCallReport[] = [];
  const usages: Usage[] = [];
  for await (const event of events) {
    if (event.type === 'chunk' && event.chunk.finishReason !== null) usages.push(event.chunk.usage);
    if (event.type === 'result') calls.push(reportOf(event.finished));
    if (event.type !== 'answer') continue;
    const { answer, turns, round } = event;
    return { ...answer, usage: addUsages(usages), messages: turns, calls, numRounds: round + 1 };
  }
  throw new RuvLLMError('internal', 'a conversation with tools ended without an answer');
}

function reportOf({ call, origin, arguments: args, output, durationMs }: FinishedToolCall): ToolCallReport {
  const { text: result, outcome, ageMs } = output;
  return {
    name: origin?.tool ?? call.name,
    server: origin?.server ?? null,
    arguments: args,
    result,
    outcome,
    durationMs,
    ...(ageMs === undefined ? {} : { ageMs }),
  };
}

/** Token counts of several answers together. */
export function addUsages(usages: readonly Usage[]): Usage {
  const sum = (key: keyof Usage): number => usages.reduce((total, usage) => total + (usage[key] ?? 0), 0);
  return {
    promptTokens: sum('promptTokens'),
    cachedTokens: sum('cachedTokens'),
    completionTokens: sum('completionTokens'),
    totalTokens: sum('totalTokens'),
    reasoningTokens: sum('reasoningTokens'),
    acceptedDraftTokens: sum('acceptedDraftTokens'),
    rejectedDraftTokens: sum('rejectedDraftTokens'),
    ...(usages.some(({ discardedTokens }) => discardedTokens !== undefined)
      ? { discardedTokens: sum('discardedTokens') }
      : {}),
  };
}
