import { linkAbort } from '../../core/abort.ts';
import type { AnswerChunk, LastChunk } from '../../runtime/requests/answer-chunks.ts';
import type { GenerationRequest, ToolSpec } from '../../runtime/requests/generation-request.ts';
import type { RunningRequest } from '../../runtime/requests/request-pipeline.ts';
import type { ChatMessage } from '../../runtime/lower-layers.ts';
import { addUsages } from '../../runtime/tools/run-tools.ts';
import { DEFAULT_TOOL_LIMITS } from '../../runtime/tools/tool-limits.ts';
import { type FinishedToolCall, runToolLoop, type ToolEvent } from '../../runtime/tools/tool-loop.ts';
import type { RequestTool, RequestTools } from '../mcp/request-tools.ts';
import { ASK_REFUSED, settleApprovals } from '../mcp/settle-approvals.ts';
import { type PartEvent, toPartEvents } from '../output-parts.ts';
import type { Exchange } from '../route.ts';
import { type McpPart, mcpItemId } from '../wire/openai/responses/mcp-items.ts';
import type { Approvals } from '../wire/openai/responses/mcp-tools.ts';
import type { ResponsePart, ResponsePartEvent } from '../wire/openai/responses/response-object.ts';

/** A response whose tools are called here. */
export interface RoundsRequest {
  /** Without MCP tools; its prompt lacks the turns. */
  readonly generation: GenerationRequest;
  /** The prompt of turns, with the instructions. */
  promptOf(turns: readonly ChatMessage[]): readonly ChatMessage[];
  readonly turns: readonly ChatMessage[];
  readonly mcp: RequestTools;
  readonly mcpChoice: { readonly label: string; readonly name: string } | null;
  readonly approvals: Approvals;
  /** For the ids of items. */
  readonly responseId: string;
}

export interface Rounds {
  /** The first answer. */
  readonly running: RunningRequest;
  readonly events: AsyncGenerator<ResponsePartEvent, void, undefined>;
  /**
   * All turns, when the events have ended; null: the parts are the only turn. They are those
   * before the answer, with the results of approved calls, and those of the answer.
   */
  readonly turns: (() => { readonly input: readonly ChatMessage[]; readonly answer: readonly ChatMessage[] }) | null;
  isErased(): boolean;
  abort(): void;
}

const toSpec = ({ runnable }: RequestTool): ToolSpec => {
  const { name, description = null, parameters = null } = runnable.definition.function;
  return { name, description, parameters, isStrict: false };
};

/** Answers, calls MCP tools and answers again; each answer is a request to the pipeline of its own, with the same id. */
export async function startRounds({ services, caller }: Exchange, request: RoundsRequest): Promise<Rounds> {
  const { generation, promptOf, mcp, mcpChoice, approvals, responseId } = request;
  const life = linkAbort(caller.signal);
  const { signal } = life;
  const roundCaller = { ...caller, signal };
  const user = generation.options.user ?? null;
  const session = generation.options.session ?? null;
  const recorder = services.openTools({ tenant: caller.tenant, requestId: caller.requestId, user, session });
  const byName = new Map(mcp.tools.map((tool) => [tool.runnable.definition.function.name, tool]));
  const record = (finished: FinishedToolCall): void => recorder?.record(finished);
  const context = { signal, now: services.clock.now, record, reuse: recorder?.reuse ?? null };
  const runnings: RunningRequest[] = [];
  /** Places of parts in the response. */
  const positions = new Map<unknown, number>();
  /** Ids of items by the ids of calls that wait for approval. */
  const pendingIds = new Map<string, string>();
  let madeTurns: readonly ChatMessage[] = [];

  const start = async (turns: readonly ChatMessage[], round: number): Promise<RunningRequest> => {
    const running = await services.pipeline.start(
      {
        ...generation,
        prompts: [promptOf(turns)],
        tools: [...generation.tools, ...mcp.tools.map(toSpec)],
        toolChoice: round === 0 ? firstChoice() : 'auto',
      },
      roundCaller,
    );
    runnings.push(running);
    return running;
  };

  function firstChoice(): GenerationRequest['toolChoice'] {
    if (mcpChoice === null) return generation.toolChoice;
    const isChosen = ({ label, tool }: RequestTool): boolean =>
      label === mcpChoice.label && tool.name === mcpChoice.name;
    return { name: mcp.tools.find(isChosen)?.runnable.definition.function.name ?? mcpChoice.name };
  }

  async function* generate(turns: readonly ChatMessage[], round: number, first: RunningRequest) {
    const running = round === 0 ? first : await start(turns, round);
    try {
      yield* running.events;
    } finally {
      running.abort(); // no effect after the last event
    }
  }

  async function* write(
    first: RunningRequest,
    turns: readonly ChatMessage[],
    doneParts: readonly McpPart[],
  ): AsyncGenerator<ResponsePartEvent, void, undefined> {
    const parts: ResponsePart[] = [];
    const usages: LastChunk['usage'][] = [];
    const add = (part: ResponsePart): number => parts.push(part) - 1;
    function* whole(part: McpPart): Generator<ResponsePartEvent> {
      const index = add(part);
      yield { type: 'open', index, part };
      yield { type: 'close', index, part, isCut: false };
    }
    for (const { label, tools } of mcp.lists) yield* whole({ type: 'mcp_list_tools', label, tools });
    for (const part of doneParts) yield* whole(part);

    const loop = runToolLoop({
      ...context,
      messages: turns,
      tools: mcp.tools.map(({ runnable }) => runnable),
      limits: DEFAULT_TOOL_LIMITS,
      generate: (messages, round) => generate(messages, round, first),
      approve({ call }) {
        const { runnable, needsApproval } = byName.get(call.name)!;
        if (runnable.consent === 'ask') return { refusal: ASK_REFUSED };
        return needsApproval ? 'pending' : 'yes';
      },
    });
    /** Open calls by the id of the call. */
    const calls = new Map<string, number>();
    let event = await loop.next();
    let last: LastChunk | null = null;
    while (event.done !== true) {
      const { value } = event;
      if (value.type === 'chunk') {
        for await (const made of toPartEvents(chunksOfRound(value), { hasText: true })) {
          if (made.type !== 'finished') yield* placed(made);
          else {
            usages.push(made.finished.usage);
            last = made.finished;
          }
        }
        continue;
      }
      if (value.type === 'pending') {
        const { call } = value.request;
        const { label, tool } = byName.get(call.name)!;
        const part: McpPart = { type: 'mcp_approval_request', label, name: tool.name, arguments: call.arguments };
        pendingIds.set(call.id, mcpItemId({ id: responseId }, part, parts.length));
        yield* whole(part);
      } else if (value.type === 'result') {
        const { call, output } = value.finished;
        let index = calls.get(call.id);
        if (index === undefined) {
          const { label, tool } = byName.get(call.name)!;
          index = add({
            type: 'mcp_call',
            label,
            name: tool.name,
            arguments: call.arguments,
            output: null,
            approvalId: null,
          });
          yield { type: 'open', index, part: parts[index]! };
        }
        const part = parts[index] as Extract<McpPart, { type: 'mcp_call' }>;
        part.output = output;
        yield { type: 'close', index, part, isCut: false };
      } else if (value.type === 'answer') madeTurns = withItemIds(value.turns);
      event = await loop.next();
    }
    // A call that the limit of tokens cut off is not made.
    for (const [index, part] of parts.entries()) {
      if (part.type === 'mcp_call' && part.output === null) yield { type: 'close', index, part, isCut: true };
    }
    yield { type: 'finished', parts, finished: { ...last!, usage: addUsages(usages) } };

    /** The pieces of one answer; leaves the event after them in `event`. */
    async function* chunksOfRound(firstPiece: Extract<ToolEvent, { type: 'chunk' }>): AsyncGenerator<AnswerChunk> {
      yield { ...firstPiece.chunk, choice: 0 };
      for (;;) {
        event = await loop.next();
        if (event.done === true || event.value.type !== 'chunk') return;
        yield { ...event.value.chunk, choice: 0 };
      }
    }

    /** Moves the parts of an answer behind those before it; calls of MCP tools become parts of their own type. */
    function* placed(made: Exclude<PartEvent, { type: 'finished' }>): Generator<ResponsePartEvent> {
      const { part } = made;
      const tool = part.type === 'tool_call' ? (byName.get(part.name) ?? null) : null;
      if (part.type === 'tool_call' && tool !== null) {
        if (tool.needsApproval || tool.runnable.consent === 'ask') return; // written when it is decided
        if (made.type === 'open') {
          const index = add({
            type: 'mcp_call',
            label: tool.label,
            name: tool.tool.name,
            arguments: '',
            output: null,
            approvalId: null,
          });
          calls.set(part.id, index);
          yield { type: 'open', index, part: parts[index]! };
          return;
        }
        const index = calls.get(part.id)!;
        const own = parts[index] as Extract<McpPart, { type: 'mcp_call' }>;
        own.arguments = part.arguments;
        if (made.type === 'delta') yield { type: 'delta', index, part: own, text: made.text, logprobs: null };
        else yield { type: 'arguments', index, part: own };
        return;
      }
      if (made.type === 'open') positions.set(part, add(part));
      yield { ...made, index: positions.get(part)! };
    }
  }

  /** The next request approves calls by the ids of their items. */
  function withItemIds(turns: readonly ChatMessage[]): readonly ChatMessage[] {
    return turns.map((turn) =>
      turn.toolCalls === undefined
        ? turn
        : { ...turn, toolCalls: turn.toolCalls.map((call) => ({ ...call, id: pendingIds.get(call.id) ?? call.id })) },
    );
  }

  /** May be called twice. */
  const end = async (): Promise<void> => {
    life.unlink();
    recorder?.close();
    await mcp.close();
  };
  try {
    const { parts, settled } = await settleApprovals(context, mcp.tools, approvals, request.turns);
    const first = await start(settled, 0);
    return {
      running: first,
      events: withEnd(write(first, settled, parts), end),
      turns: () => ({ input: settled, answer: madeTurns }),
      isErased: () => runnings.some((running) => running.isErased()),
      abort() {
        life.abort();
        for (const running of runnings) running.abort();
        void end(); // events that no one began to read have no end of their own
      },
    };
  } catch (error) {
    life.abort();
    await end();
    throw error;
  }
}

async function* withEnd<T>(
  events: AsyncGenerator<T, void, undefined>,
  end: () => Promise<void>,
): AsyncGenerator<T, void, undefined> {
  try {
    yield* events;
  } finally {
    await end();
  }
}
