import type { ChatMessage, ToolCall } from '../../chat/types.ts';
import { abortError } from '../../core/abort.ts';
import { collectChunks } from '../collect-chunks.ts';
import type { GenerateChunk, GenerateResult } from '../generation-types.ts';
import type { RunnableTool, ToolOutput } from './runnable-tool.ts';
import { createToolCounter, type ToolLimits } from './tool-limits.ts';

/** A call of a tool by the model. */
export interface ToolCallRequest {
  readonly call: ToolCall;
  /** The MCP server and the tool's name there; null: a function of the program. */
  readonly origin: RunnableTool['origin'];
  /** The parsed arguments. */
  readonly arguments: Readonly<Record<string, unknown>>;
}

/** A call that has ended. */
export interface FinishedToolCall extends ToolCallRequest {
  readonly output: ToolOutput;
  readonly durationMs: number;
}

/** `pending`: someone decides later; the loop ends after this round without a result of the call. A refusal may say why. */
export type Approval = 'yes' | 'no' | 'pending' | { readonly refusal: string };

export interface ToolLoop {
  readonly messages: readonly ChatMessage[];
  readonly tools: readonly RunnableTool[];
  readonly limits: ToolLimits;
  readonly signal: AbortSignal;
  now(): number;
  /** The answer to the messages; the first round may have to call a tool, later ones may not have to. */
  generate(messages: readonly ChatMessage[], round: number): AsyncIterable<GenerateChunk>;
  /** Asked before each call; the tool's own consent is `ask` or `allow`. */
  approve(request: ToolCallRequest, tool: RunnableTool): Promise<Approval> | Approval;
  /** Writes the audit entry of a call. */
  record(finished: FinishedToolCall): void;
  /** A result that is fresh enough for the tool, or that of `run`; null: there is no memory. */
  readonly reuse: ReuseResult | null;
}

/** Looks for an earlier result of a tool that only reads. */
export type ReuseResult = (
  tool: RunnableTool,
  args: Readonly<Record<string, unknown>>,
  run: () => Promise<ToolOutput>,
) => Promise<ToolOutput>;

/** An event of a conversation with tools. */
export type ToolEvent =
  | { readonly type: 'chunk'; readonly round: number; readonly chunk: GenerateChunk }
  | { readonly type: 'call'; readonly round: number; readonly request: ToolCallRequest }
  | { readonly type: 'pending'; readonly round: number; readonly request: ToolCallRequest }
  | { readonly type: 'result'; readonly round: number; readonly finished: FinishedToolCall }
  | {
      readonly type: 'answer';
      readonly round: number;
      readonly answer: GenerateResult;
      readonly turns: readonly ChatMessage[];
    };

const REFUSED = 'Error: this call was not allowed. Do not repeat it.';

/** The arguments of a call; null: they are no JSON object. */
export function parseArguments(text: string): Readonly<Record<string, unknown>> | null {
  try {
    const value: unknown = text.trim() === '' ? {} : JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as Readonly<Record<string, unknown>>)
      : null;
  } catch {
    return null;
  }
}

export const textOutput = (text: string, outcome: ToolOutput['outcome']): ToolOutput => ({
  text,
  outcome,
  numBytes: new TextEncoder().encode(text).length,
});

/** The result of a call as a turn. It has the role of a tool, so that no text of a tool can become an instruction of the system. */
export const resultTurn = ({ id, name }: ToolCall, { text }: ToolOutput): ChatMessage => ({
  role: 'tool',
  content: text,
  name,
  toolCallId: id,
});

/** Runs one call that may be made. */
export async function runCall(
  { signal, now, record, reuse }: Pick<ToolLoop, 'signal' | 'now' | 'record' | 'reuse'>,
  tool: RunnableTool,
  request: ToolCallRequest,
): Promise<FinishedToolCall> {
  const startMs = now();
  const run = (): Promise<ToolOutput> => tool.call(request.arguments, signal);
  const output = reuse === null || (tool.maxAgeMs ?? 0) === 0 ? await run() : await reuse(tool, request.arguments, run);
  const finished = { ...request, output, durationMs: now() - startMs };
  record(finished);
  return finished;
}

/**
 * Answers, calls the tools that the answer names and answers again, until an answer has no calls. It also ends after calls of tools
 * that are not among `tools`, which the caller answers, and after calls that are pending. The last event is the answer, with all turns
 * since `messages`.
 */
export async function* runToolLoop(loop: ToolLoop): AsyncGenerator<ToolEvent, void, undefined> {
  const { messages, tools, limits, signal } = loop;
  const byName = new Map(tools.map((tool) => [tool.definition.function.name, tool]));
  const counter = createToolCounter(limits);
  const turns: ChatMessage[] = [];

  async function* settle(round: number, call: ToolCall, tool: RunnableTool): AsyncGenerator<ToolEvent, boolean> {
    const { origin } = tool;
    const args = parseArguments(call.arguments);
    counter.count(call.name, args ?? call.arguments);
    const request = { call, origin, arguments: args ?? {} };
    const end = (output: ToolOutput): ToolEvent => {
      const finished = { ...request, output, durationMs: 0 };
      loop.record(finished);
      turns.push(resultTurn(call, output));
      return { type: 'result', round, finished };
    };
    if (args === null) {
      yield end(textOutput('Error: the arguments are not a JSON object.', 'failed'));
      return true;
    }
    const approval = await loop.approve(request, tool);
    if (approval === 'pending') {
      yield { type: 'pending', round, request };
      return false;
    }
    if (approval !== 'yes') {
      yield end(textOutput(approval === 'no' ? REFUSED : approval.refusal, 'refused'));
      return true;
    }
    yield { type: 'call', round, request };
    const finished = await runCall(loop, tool, request);
    turns.push(resultTurn(call, finished.output));
    yield { type: 'result', round, finished };
    return true;
  }

  for (let round = 0; ; round++) {
    counter.startRound();
    const answer = yield* collectRound(loop, [...messages, ...turns], round);
    turns.push(turnOf(answer));
    // The last call of an answer that was cut off may be incomplete.
    let isDone = answer.toolCalls.length === 0 || answer.finishReason === 'length';
    if (!isDone) {
      for (const call of answer.toolCalls) {
        if (signal.aborted) throw abortError(signal);
        const tool = byName.get(call.name);
        if (tool === undefined || !(yield* settle(round, call, tool))) isDone = true;
      }
    }
    if (isDone) {
      yield { type: 'answer', round, answer, turns };
      return;
    }
  }
}

async function* collectRound(
  { generate }: ToolLoop,
  messages: readonly ChatMessage[],
  round: number,
): AsyncGenerator<ToolEvent, GenerateResult> {
  const chunks: GenerateChunk[] = [];
  for await (const chunk of generate(messages, round)) {
    chunks.push(chunk);
    yield { type: 'chunk', round, chunk };
  }
  return collectChunks(toAsync(chunks));
}

async function* toAsync<T>(items: readonly T[]): AsyncGenerator<T, void, undefined> {
  yield* items;
}

/** Calls whose arguments are no JSON object are kept without them: templates require an object. */
function turnOf({ text, reasoning, toolCalls }: GenerateResult): ChatMessage {
  return {
    role: 'assistant',
    content: text,
    ...(reasoning === '' ? {} : { reasoning }),
    ...(toolCalls.length === 0
      ? {}
      : { toolCalls: toolCalls.map((call) => (parseArguments(call.arguments) === null ? { ...call, arguments: '{}' } : call)) }), // prettier-ignore
  };
}
