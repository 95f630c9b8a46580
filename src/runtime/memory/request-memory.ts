import type { SerializedError } from '../../core/errors.ts';
import { clipText } from '../../memory/common/text-limits.ts';
import type { EmbeddedText, Memory } from '../../memory/memory.ts';
import { checkTenantIsCallers } from '../../memory/state-tenant.ts';
import { MAX_TURN_TEXT, MAX_WITNESS_TEXT } from '../../memory/schemas/text-lengths.ts';
import type { PackedSource } from '../../memory/search/pack.ts';
import type { SearchCandidate } from '../../memory/search/search.ts';
import type { Learning } from '../learning/learning.ts';
import type { Prompt } from '../prompt.ts';
import type { RouteChoice } from '../routing/types.ts';
import type { ResolvedMemoryWish } from './memory-wish.ts';
import { addContext, queryOf } from './recall.ts';
import { trajectoryOf } from './trajectory-of.ts';

/** A request that the memory shall know of. */
export interface RememberedCall {
  readonly tenant: string;
  /** A UUID. */
  readonly requestId: string;
  readonly model: string;
  readonly session: string | null;
  readonly user: string | null;
  readonly prompt: Prompt;
  /** Null: nothing is put into the prompt. */
  readonly wish: ResolvedMemoryWish | null;
  /** Whether somebody will choose who answers, and wants to know what the question is near to. Default false. */
  readonly isRouted?: boolean;
}

/** Who answered a request that named nobody. */
export interface ServedCall {
  readonly model: string;
  readonly choice: RouteChoice;
  readonly temperature: number;
  readonly topP: number;
}

/** What the memory had to say before a request. */
export interface Recalled {
  readonly prompt: Prompt;
  readonly sources: readonly PackedSource[];
  readonly embedded: EmbeddedText | null;
  /** Of what was found, the nearest first. */
  readonly similarities: readonly number[];
  /** What the sources say, by id. */
  readonly texts: ReadonlyMap<string, string>;
  /** What was looked at, whether it was shown or not. */
  readonly candidates: readonly SearchCandidate[];
  readonly embeddingMs: number;
  readonly retrievalMs: number;
}

/** How a request ended. */
export interface CallOutcome {
  /** What was said, as far as it came. */
  readonly text: string;
  readonly numPromptTokens: number;
  readonly numOutputTokens: number;
  /** Null: there was no token. */
  readonly ttftMs: number | null;
  readonly generationMs: number;
  readonly error: SerializedError | null;
  /** Null: the model that was named. */
  readonly served?: ServedCall | null;
}

export interface OpenCall {
  /** With what was recalled. */
  readonly prompt: Prompt;
  readonly sources: readonly PackedSource[];
  readonly embedded: EmbeddedText | null;
  readonly similarities: readonly number[];
  /** To be called once; never throws and makes nobody wait. */
  finish(outcome: CallOutcome): void;
}

/** Between requests and the memory: recalls before, writes down after. */
export interface RequestMemory {
  begin(call: RememberedCall): Promise<OpenCall>;
  /** Resolves when all that has finished is handed to the audit log, and in the sessions. */
  settle(): Promise<void>;
}

export interface RequestMemoryContext {
  now(): number;
  wallClock(): number;
  report(message: string): void;
  /** Hears of every request that went well; default: nobody learns. */
  readonly learning?: Pick<Learning, 'observe' | 'expect'> | null;
}

/** Longer texts say no more about what a request is about. */
const MAX_EMBEDDED_CHARS = 16_384;
/** Requests that may wait for their vectors; beyond it they are written down without. */
const MAX_EMBEDDING = 1000;

const NOTHING = { sources: [], similarities: [], texts: new Map<string, string>(), candidates: [] } as const;

export function createRequestMemory(
  memory: Memory,
  { now, wallClock, report, learning = null }: RequestMemoryContext,
): RequestMemory {
  const pending = new Set<Promise<void>>();
  let hasFailed = false;

  const embed = (text: string): Promise<EmbeddedText | null> =>
    text === '' ? Promise.resolve(null) : memory.embed(clipText(text, MAX_EMBEDDED_CHARS).text);

  /** What a request must not fail of. */
  const quietly = async <T>(doing: string, work: Promise<T>): Promise<T | null> => {
    try {
      return await work;
    } catch (error) {
      // Once: a memory whose disk is full would say so with every request.
      if (!hasFailed) report(`${doing} failed: ${error instanceof Error ? error.message : String(error)}`);
      hasFailed = true;
      return null;
    }
  };

  async function recall(call: RememberedCall, wish: ResolvedMemoryWish, query: string): Promise<Recalled> {
    const startMs = now();
    const embedded = await embed(query);
    const embeddingMs = now() - startMs;
    if (embedded === null) {
      return { prompt: call.prompt, embedded, ...NOTHING, embeddingMs, retrievalMs: 0 };
    }
    const { vector, space } = embedded;
    const { context, results, candidates } = await memory.search(call.tenant, {
      vector,
      space,
      kinds: [...wish.kinds],
      filter: [...wish.filter],
      k: wish.k,
      minSimilarity: wish.minSimilarity,
      expandHops: wish.expandHops,
      tokenBudget: wish.tokenBudget,
    });
    const retrievalMs = now() - startMs - embeddingMs;
    const sources = context?.sources ?? [];
    const prompt = sources.length === 0 ? call.prompt : addContext(call.prompt, context!.text);
    const similarities = results.flatMap(({ similarity }) => (similarity === null ? [] : [similarity]));
    const texts = new Map(results.map(({ record: { id }, text }) => [id, text]));
    return { prompt, sources, embedded, similarities, texts, candidates, embeddingMs, retrievalMs };
  }

  /** Without a wish only whoever routes needs to know what it is about. */
  async function lookAt({ prompt, isRouted = false }: RememberedCall): Promise<Recalled> {
    const startMs = now();
    const embedded = isRouted ? await quietly('embedding', embed(queryOf(prompt))) : null;
    const embeddingMs = isRouted ? now() - startMs : 0;
    return { prompt, embedded, ...NOTHING, embeddingMs, retrievalMs: 0 };
  }

  async function writeDown(
    call: RememberedCall,
    recalled: Recalled,
    outcome: CallOutcome,
    totalMs: number,
  ): Promise<void> {
    const { tenant, requestId, session } = call;
    const served = outcome.served ?? null;
    const model = served?.model ?? call.model;
    const query = queryOf(call.prompt);
    const isCrowded = pending.size > MAX_EMBEDDING;
    const embedded = recalled.embedded ?? (isCrowded ? null : await quietly('embedding', embed(query)));
    const answer = isCrowded ? null : await quietly('embedding', embed(outcome.text));
    await quietly('writing to the memory', memory.meet(tenant));
    void memory.witness.enqueue(tenant, {
      requestId,
      sessionId: session,
      timestampMs: Math.floor(wallClock()),
      model,
      routing: served === null ? null : routingOf(served),
      quality: null,
      latency: {
        embeddingMs: recalled.embeddingMs,
        retrievalMs: recalled.retrievalMs,
        routingMs: served?.choice.routingMs ?? 0,
        attentionMs: 0,
        generationMs: outcome.generationMs,
        totalMs,
        ttftMs: outcome.ttftMs,
      },
      contextDocIds: recalled.sources.map(({ id }) => id),
      query,
      response: outcome.text,
      numPromptTokens: outcome.numPromptTokens,
      numOutputTokens: outcome.numOutputTokens,
      queryEmbedding: embedded?.vector ?? null,
      responseEmbedding: embedded === null ? null : (answer?.vector ?? null),
      space: embedded?.space ?? null,
      error: outcome.error && {
        code: outcome.error.code,
        message: clipText(outcome.error.message, 4096).text,
        isRetryable: outcome.error.isRetryable,
      },
    });
    if (outcome.error === null) {
      learning?.observe(
        tenant,
        trajectoryOf({ ...call, model }, recalled, outcome, { createdMs: Math.floor(wallClock()), query, embedded }),
      );
    }
    if (session === null || outcome.error !== null) return;
    const turn = {
      query: clipText(query, MAX_TURN_TEXT).text,
      answer: clipText(outcome.text, MAX_TURN_TEXT).text,
      requestId,
      embedding: embedded?.vector ?? null,
      space: embedded?.space ?? null,
    };
    const about = embedded === null ? {} : { contextEmbedding: embedded.vector, space: embedded.space };
    const whose = call.user === null ? {} : { userId: call.user };
    await quietly('keeping a session', memory.sessions.addTurn(tenant, session, turn, { ...about, ...whose }));
  }

  return {
    async begin(call) {
      checkTenantIsCallers(call.tenant);
      const startMs = now();
      const recalled = call.wish === null ? await lookAt(call) : await recall(call, call.wish, queryOf(call.prompt));
      return {
        prompt: recalled.prompt,
        sources: recalled.sources,
        embedded: recalled.embedded,
        similarities: recalled.similarities,
        finish(outcome) {
          const work = writeDown(call, recalled, outcome, now() - startMs).finally(() => pending.delete(work));
          pending.add(work);
          work.catch(() => {});
          learning?.expect(call.tenant, call.requestId, work);
        },
      };
    },
    async settle() {
      await Promise.allSettled(pending);
    },
  };
}

/** As the log has it, which has place for four candidates. */
function routingOf({ choice, temperature, topP }: ServedCall) {
  const { candidate, confidence, probs } = choice;
  return { model: candidate.id, contextSize: 0, temperature, topP, confidence, modelProbs: probs.slice(0, 4) };
}

/** The longest answer that is of use to anyone who looks at a request later. */
export const MAX_REMEMBERED_TEXT = MAX_WITNESS_TEXT;
