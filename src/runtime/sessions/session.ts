import { RuvLLMError } from '../../core/errors.ts';
import { type GenerateOptions, resolveGenerateOptions } from '../generate-options.ts';
import { collectChunks } from '../collect-chunks.ts';
import { generateChunks, type GenerationContext } from '../generation.ts';
import type { GenerateChunk, GenerateResult } from '../generation-types.ts';
import type { RememberCall } from '../memory/remember-chunks.ts';
import type { Prompt } from '../prompt.ts';
import { encodeTurn } from '../text/text-thread.ts';
import type { SessionName, SessionTable } from './session-table.ts';

/** Options of a turn; tenant and session id were set when the session was opened. Recalled texts become part of the conversation. */
export type SessionOptions = Omit<GenerateOptions, 'tenant' | 'session'>;

/** A conversation with a stored history: every prompt continues after the last answer. */
export interface Session {
  readonly id: string;
  readonly tenant: string;
  /** All tokens of prompts and answers, including stop strings. */
  readonly tokenIds: readonly number[];
  readonly numTurns: number;
  /** Adds a turn: a text or token ids, and the answer. A failed turn leaves the conversation unchanged. */
  generate(prompt: string | readonly number[], options?: SessionOptions): Promise<GenerateResult>;
  /** The same as a stream. The turn counts when the last chunk arrives; leaving the loop early discards it. */
  generateStream(
    prompt: string | readonly number[],
    options?: SessionOptions,
  ): AsyncGenerator<GenerateChunk, void, undefined>;
  /** Deletes the history. */
  clear(): void;
}

export interface SessionParts {
  readonly context: GenerationContext;
  readonly table: SessionTable;
  readonly busy: BusySessions;
  readonly remember: RememberCall;
}

/** Sessions with a turn in progress: of two concurrent turns, one would be lost. */
export interface BusySessions {
  /** Throws `conflict` if the session is busy. */
  enter(name: SessionName): void;
  leave(name: SessionName): void;
  requireIdle(name: SessionName): void;
}

export function createBusySessions(): BusySessions {
  const tenants = new Map<string, Set<string>>();
  function requireIdle({ tenant, id }: SessionName): void {
    if (tenants.get(tenant)?.has(id) !== true) return;
    throw new RuvLLMError('conflict', `session "${id}" has a turn in progress`, { isRetryable: true });
  }
  return {
    requireIdle,
    enter(name) {
      requireIdle(name);
      const ids = tenants.get(name.tenant) ?? new Set();
      tenants.set(name.tenant, ids.add(name.id));
    },
    leave({ tenant, id }) {
      const ids = tenants.get(tenant);
      ids?.delete(id);
      if (ids?.size === 0) tenants.delete(tenant);
    },
  };
}

/** A handle to one session; several may exist. */
export function createSession({ context, table, busy, remember }: SessionParts, name: SessionName): Session {
  const { tenant, id } = name;
  let numTurnsSeen = 0;

  /** The tokens so far; fails if the history was deleted meanwhile, instead of starting a new one. */
  function readTokens(): Int32Array {
    const state = table.find(name);
    if (state === null && numTurnsSeen > 0) {
      throw new RuvLLMError(
        'not_found',
        `session "${id}" with ${numTurnsSeen} turns was deleted or dropped; the limit is ${table.maxSessions} sessions`,
        { data: { numTurns: numTurnsSeen, maxSessions: table.maxSessions } },
      );
    }
    if (state === null) return new Int32Array(0);
    numTurnsSeen = state.numTurns;
    if (state.tokenIds !== null) return state.tokenIds;
    throw new RuvLLMError(
      'invalid_option',
      `session "${id}" has ${state.numTurns} turns without a stored history; continue it with generate(messages, { session })`,
      { data: { option: 'session', numTurns: state.numTurns } },
    );
  }

  async function* takeTurn(
    prompt: string | readonly number[],
    given: SessionOptions | undefined,
  ): AsyncGenerator<GenerateChunk, void, undefined> {
    for (const option of ['tenant', 'session']) {
      if (given !== undefined && given !== null && Object.hasOwn(given, option)) {
        throw new RuvLLMError('invalid_option', `session: unknown option "${option}"`, { data: { option } });
      }
    }
    const options = { ...resolveGenerateOptions(given, context.sampling), tenant, session: id };
    if (options.fill !== null) {
      throw new RuvLLMError('invalid_option', 'option "fill" cannot be combined with a session', {
        data: { option: 'fill' },
      });
    }
    if (options.reflection !== null) {
      throw new RuvLLMError('invalid_option', 'option "reflection" requires messages; a session has tokens', {
        data: { option: 'reflection' },
      });
    }
    busy.enter(name);
    let isBusy = true;
    const leave = (): void => {
      if (isBusy) busy.leave(name);
      isBusy = false;
    };
    async function* generate(historyIds: Int32Array, turn: Prompt) {
      const turnIds = await encodeTurn(context, turn as string | readonly number[], historyIds, options);
      const tokenIds = [...historyIds, ...turnIds];
      for await (const chunk of generateChunks(context, [...tokenIds], options)) {
        for (const tokenId of chunk.tokenIds) tokenIds.push(tokenId);
        if (chunk.finishReason !== null) {
          table.keepTurn(name, Int32Array.from(tokenIds), numTurnsSeen + 1);
          numTurnsSeen++; // only after the write: a turn that the disk rejects does not count
          leave(); // a reader that has the last chunk may not read the end of the stream
        }
        yield chunk;
      }
    }
    try {
      const historyIds = readTokens();
      yield* remember(prompt, options, (turn) => generate(historyIds, turn), historyIds.length);
    } finally {
      leave();
    }
  }

  return {
    id,
    tenant,
    get tokenIds() {
      return Array.from(readTokens());
    },
    get numTurns() {
      readTokens();
      return numTurnsSeen;
    },
    generate: async (prompt, options) => collectChunks(takeTurn(prompt, options)),
    generateStream: takeTurn,
    clear() {
      busy.requireIdle(name);
      table.delete(name);
      numTurnsSeen = 0;
    },
  };
}
