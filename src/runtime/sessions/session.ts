import { RuvLLMError } from '../../core/errors.ts';
import { type GenerateOptions, resolveGenerateOptions } from '../generate-options.ts';
import { collectChunks, generateChunks, type GenerationContext } from '../generation.ts';
import type { GenerateChunk, GenerateResult } from '../generation-types.ts';
import type { RememberCall } from '../memory/remember-chunks.ts';
import type { Prompt } from '../prompt.ts';
import { encodeTurn } from '../text/text-thread.ts';
import type { SessionName, SessionTable } from './session-table.ts';

/** Options of a turn; tenant and session id were set when the session was opened. Recalled texts become part of the conversation. */
export type SessionOptions = Omit<GenerateOptions, 'tenant' | 'session'>;

/** A conversation the library keeps: every prompt goes on where the last answer ended. */
export interface Session {
  readonly id: string;
  readonly tenant: string;
  /** Everything said so far: prompts and answers as the model read and made them, stop strings included. */
  readonly tokenIds: readonly number[];
  readonly numTurns: number;
  /** One turn: text or token ids to add, and the answer to it. When it fails the conversation is as it was before. */
  generate(prompt: string | readonly number[], options?: SessionOptions): Promise<GenerateResult>;
  /** The same token by token. The turn counts when the last chunk arrives; leaving the loop early undoes it. */
  generateStream(
    prompt: string | readonly number[],
    options?: SessionOptions,
  ): AsyncGenerator<GenerateChunk, void, undefined>;
  /** Forgets what was said; the next prompt begins anew. */
  clear(): void;
}

export interface SessionParts {
  readonly context: GenerationContext;
  readonly table: SessionTable;
  /** Names of sessions with a turn in progress. */
  readonly busy: BusySessions;
  readonly remember: RememberCall;
}

/** Which sessions have a turn in progress: two at once would each forget the other. */
export interface BusySessions {
  /** Throws `conflict` when the session is busy already. */
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

/** A view of one session; any number of them may exist. */
export function createSession({ context, table, busy, remember }: SessionParts, name: SessionName): Session {
  const { tenant, id } = name;
  let numTurnsSeen = 0;

  /** The tokens so far. A conversation that was there and is gone is an error: going on without it would be another one. */
  function readTokens(): Int32Array {
    const state = table.find(name);
    if (state === null && numTurnsSeen > 0) {
      throw new RuvLLMError(
        'not_found',
        `session "${id}" with ${numTurnsSeen} turns was deleted, or forgotten: at most ${table.maxSessions} are known`,
        { data: { numTurns: numTurnsSeen, maxSessions: table.maxSessions } },
      );
    }
    if (state === null) return new Int32Array(0);
    numTurnsSeen = state.numTurns;
    if (state.tokenIds !== null) return state.tokenIds;
    throw new RuvLLMError(
      'invalid_option',
      `session "${id}" has ${state.numTurns} turns of whole histories; it goes on with generate(messages, { session })`,
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
    const options = { ...resolveGenerateOptions(given), tenant, session: id };
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
      yield* remember(prompt, options, (turn) => generate(historyIds, turn), historyIds.length > 0);
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
