import { RuvLLMError, serializeError } from '../../core/errors.ts';
import type { OfferedTool } from '../../mcp/server-pool.ts';
import { nameTools } from '../../mcp/tool-names.ts';
import { cutText } from '../../mcp/tool-result.ts';
import type { ToolDefinition } from '../chat-options.ts';

/** How a call of a tool ended. `cut`: its result was longer than the limit; `refused`: no one allowed it. */
export type ToolOutcome = 'done' | 'cut' | 'failed' | 'refused';

/** The result of a call, as the model reads it. */
export interface ToolOutput {
  readonly text: string;
  readonly outcome: ToolOutcome;
  /** UTF-8 bytes of the whole result. */
  readonly numBytes: number;
  /** Milliseconds since the call whose result this is; absent: the tool was called. */
  readonly ageMs?: number;
}

/** A tool that the loop calls itself. */
export interface RunnableTool {
  /** With the name that the model sees. */
  readonly definition: ToolDefinition;
  /** The MCP server and the tool's name there; null: a function of the program. */
  readonly origin: { readonly server: string; readonly tool: string } | null;
  /** `ask`: only after approval. */
  readonly consent: 'allow' | 'ask';
  /** Milliseconds that a result may be old to be used again for the same arguments; only for tools without side effects. Default 0: never. */
  readonly maxAgeMs?: number;
  /** Rejects only if the signal aborts. */
  call(args: Readonly<Record<string, unknown>>, signal: AbortSignal): Promise<ToolOutput>;
}

/** A function of the program that the model may call. */
export interface FunctionTool extends ToolDefinition {
  /** Whether calls have no side effects. Default false. */
  readonly isReadOnly?: boolean;
  /** Milliseconds that a result in the memory may be old to be used again for the same arguments; requires `isReadOnly`. Default 0: never. */
  readonly maxAgeMs?: number;
  /** Gets the parsed arguments. A result other than a string becomes JSON; an exception is a failed call, which the model reads. */
  call(args: any, context: { readonly signal: AbortSignal }): unknown; // oxlint-disable-line typescript/no-explicit-any
}

/** UTF-8 bytes of a function's result. */
const MAX_FUNCTION_RESULT = 1 << 20;

export function toRunnable({ call, isReadOnly = false, maxAgeMs = 0, ...definition }: FunctionTool): RunnableTool {
  const { name } = definition.function;
  if (!Number.isFinite(maxAgeMs) || maxAgeMs < 0 || (maxAgeMs > 0 && isReadOnly !== true)) {
    throw new RuvLLMError(
      'invalid_option',
      `tool "${name}": maxAgeMs must be a number from 0 on, and 0 without isReadOnly; it is ${maxAgeMs}`,
      { data: { option: 'tools', tool: name, maxAgeMs } },
    );
  }
  return {
    definition,
    origin: null,
    consent: 'allow',
    maxAgeMs,
    call: (args, signal) =>
      settled(signal, async () => {
        const value = await call(args, { signal });
        const text = typeof value === 'string' ? value : (JSON.stringify(value) ?? '');
        return outputOf(cutText(text.toWellFormed(), MAX_FUNCTION_RESULT), false);
      }),
  };
}

/** MCP tools under names that the model can tell apart. */
export function toRunnables(offered: readonly OfferedTool[], taken: ReadonlySet<string>): readonly RunnableTool[] {
  const names = nameTools(offered.map(({ server, name }) => ({ server, name })), taken); // prettier-ignore
  return offered.map(
    ({ server, name: tool, description, inputSchema: parameters, consent, maxAgeMs, call }, index) => ({
      definition: {
        type: 'function',
        function: { name: names[index]!, ...(description === '' ? {} : { description }), parameters },
      },
      origin: { server, tool },
      consent,
      maxAgeMs,
      call: (args, signal) =>
        settled(signal, async () => {
          const { isError, ...result } = await call(args, signal);
          return outputOf(result, isError);
        }),
    }),
  );
}

const outputOf = (
  { text, numBytes, isCut }: { readonly text: string; readonly numBytes: number; readonly isCut: boolean },
  isError: boolean,
): ToolOutput => ({ text, numBytes, outcome: isError ? 'failed' : isCut ? 'cut' : 'done' });

/** A failure is an output, so that the model can react to it. */
async function settled(signal: AbortSignal, work: () => Promise<ToolOutput>): Promise<ToolOutput> {
  try {
    return await work();
  } catch (error) {
    if (signal.aborted) throw error instanceof RuvLLMError ? error : new RuvLLMError('aborted', 'aborted by the caller', { cause: error }); // prettier-ignore
    const text = `Error: ${serializeError(error).message}`;
    return { text, outcome: 'failed', numBytes: new TextEncoder().encode(text).length };
  }
}
