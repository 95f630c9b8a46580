import { covers, type DataOwner } from '../../core/erasure.ts';
import { RuvLLMError } from '../../core/errors.ts';
import { clipText } from '../../memory/common/text-limits.ts';
import type { Memory } from '../../memory/memory.ts';
import { TOOL_MODEL_PREFIX } from '../../memory/schemas/audit.ts';
import type { JsonValue } from '../../memory/types.ts';
import type { ToolOutput } from '../tools/runnable-tool.ts';
import { type FinishedToolCall, type ReuseResult, textOutput } from '../tools/tool-loop.ts';

/** The request that calls tools. */
export interface ToolOwner {
  readonly tenant: string;
  /** A UUID. */
  readonly requestId: string;
  readonly user: string | null;
  readonly session: string | null;
}

/** Writes the tool calls of one request to the audit log. */
export interface ToolRecorder {
  /** Fails with `conflict` if the data of the request was erased meanwhile: its loop must end, too. */
  record(finished: FinishedToolCall): void;
  /** Results of the tool cache, for tools that only read. Only whole results of calls that succeeded are stored. */
  readonly reuse: ReuseResult;
  close(): void;
}

/** A result that must not be stored. */
class NotStored extends Error {
  readonly output: ToolOutput;
  constructor(output: ToolOutput) {
    super('not stored');
    this.output = output;
  }
}

const LATENCY = { embeddingMs: 0, retrievalMs: 0, routingMs: 0, ttftMs: null } as const;

/** One entry per call: the arguments are its query, the result is its response, sealed like those of requests. */
export function createToolRecorders(memory: Memory, wallClock: () => number) {
  const open = new Set<{ readonly owner: DataOwner; isErased: boolean }>();
  return {
    open({ tenant, requestId, user, session }: ToolOwner): ToolRecorder {
      const one = { owner: { tenant, userId: user, requestId }, isErased: false };
      open.add(one);
      return {
        record({ call, origin, output, durationMs }) {
          if (one.isErased || memory.erasure.isErasing(one.owner)) {
            throw new RuvLLMError('conflict', 'the data of this request was erased; its tool calls end');
          }
          const { text, outcome, numBytes } = output;
          const hasFailed = outcome === 'failed' || outcome === 'refused';
          void memory.audit.enqueue(tenant, {
            requestId, // as that of the answer, so that erasing the request erases its calls
            sessionId: session,
            userId: user,
            timestampMs: Math.floor(wallClock()),
            model: `${TOOL_MODEL_PREFIX}${origin?.server ?? 'function'}`,
            routing: null,
            quality: null,
            latency: { ...LATENCY, generationMs: durationMs, totalMs: durationMs },
            contextDocIds: [],
            query: call.arguments.toWellFormed(),
            response: text,
            numPromptTokens: 0,
            numOutputTokens: 0,
            queryEmbedding: null,
            responseEmbedding: null,
            space: null,
            error: hasFailed ? { code: 'tool_failed', message: clipText(text, 4096).text, isRetryable: false } : null,
            tool: {
              server: origin?.server ?? null,
              name: clipText(origin?.tool ?? call.name, 256).text,
              numBytes,
              outcome,
            },
          });
        },
        async reuse({ definition, origin, maxAgeMs = 0 }, args, run) {
          const { name, parameters } = definition.function;
          const tool = {
            name: origin === null ? name : `${origin.server}/${origin.tool}`,
            isReadOnly: true,
            version: JSON.stringify(parameters ?? null),
          };
          try {
            const options = { maxAgeMs, tenant, user, requestId };
            const { result, from, ageMs } = await memory.toolCache.call(tool, args as JsonValue, options, async () => {
              const output = await run();
              if (output.outcome !== 'done') throw new NotStored(output);
              return output.text;
            });
            return { ...textOutput(result, 'done'), ...(from === 'run' ? {} : { ageMs }) };
          } catch (error) {
            if (error instanceof NotStored) return error.output;
            // An equal call of another request was aborted, and not this one; or the cache has failed.
            return run();
          }
        },
        close: () => void open.delete(one),
      };
    },
    erasure: {
      name: 'tool calls in progress',
      async erase(subject: Parameters<typeof covers>[0]) {
        for (const one of open) if (covers(subject, one.owner)) one.isErased = true;
      },
      count: async (subject: Parameters<typeof covers>[0]) =>
        [...open].filter(({ owner, isErased }) => !isErased && covers(subject, owner)).length,
    },
  };
}
