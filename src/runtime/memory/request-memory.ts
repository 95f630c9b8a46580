import { covers, type DataOwner } from '../../core/erasure.ts';
import { messageOf, RuvLLMError } from '../../core/errors.ts';
import { clipText } from '../../memory/common/text-limits.ts';
import type { EmbeddedText, Memory } from '../../memory/memory.ts';
import { checkTenantIsCallers } from '../../memory/state-tenant.ts';
import { MAX_TURN_TEXT } from '../../memory/schemas/text-lengths.ts';
import type { MemoryQuestion, MemoryReply } from '../../memory/search/ask.ts';
import { contextOf, isFollowUp } from '../../memory/search/follow-up.ts';
import type { PackedContext, PackedSource } from '../../memory/search/pack.ts';
import { packResults } from '../../memory/search/pack-results.ts';
import type { MemoryResult } from '../../memory/search/search.ts';
import type { FeedbackLog } from '../learning/feedback-log.ts';
import type { Learning } from '../learning/learning.ts';
import type { Prompt } from '../prompt.ts';
import { imagesOf } from '../prompt-images.ts';
import type { NearRecord } from '../../memory/types.ts';
import { type AgentWriter, createAgentWriter } from './agent-writer.ts';
import { lateParts, scoreAnswer } from './answer-quality.ts';
import type { CorrectedPair } from './corrections.ts';
import { noSession } from './memory-wish.ts';
import { addExchange, earlierQuestions, MAX_EARLIER, queryOf } from './recall.ts';
import { estimateTokens, promptWith, reportOf, searchOf } from './recall-parts.ts';
import { reflectionOf, routingOf, usedPatterns } from './served-parts.ts';
import { createToolRecorders, type ToolOwner, type ToolRecorder } from './tool-recorder.ts';
import { trajectoryOf } from './trajectory-of.ts';
import type { RememberedCall, Recalled, RecallReport, CallOutcome } from './types.ts';
import { createErrorPatterns } from '../reflection/error-patterns.ts';
import type { ErrorPatterns } from '../reflection/types.ts';

export interface OpenCall {
  /** With the recalled texts. */
  readonly prompt: Prompt;
  readonly sources: readonly PackedSource[];
  /** Null: no recall was requested. */
  readonly recall: RecallReport | null;
  readonly embedded: EmbeddedText | null;
  readonly similarities: readonly number[];
  readonly near: readonly NearRecord[] | null;
  /**
   * Writes the audit entry in the background. Call once; never throws. Returns a promise if the answer must not be completed before
   * something of it is stored, such as its turn of a session; it never rejects.
   */
  finish(outcome: CallOutcome): Promise<void> | void;
}

/** Recalls before a request and writes its audit entry after it. */
export interface RequestMemory {
  begin(call: RememberedCall): Promise<OpenCall>;
  /** Records the tool calls of a request; close it when the request has ended. */
  openTools(owner: ToolOwner): ToolRecorder;
  /** Errors that the answers of a tenant repeat. */
  readonly errorPatterns: ErrorPatterns;
  /** Resolves when all finished calls are queued in the audit log and stored in the sessions. */
  settle(): Promise<void>;
  close(): Promise<void>;
}

export interface RequestMemoryContext {
  now(): number;
  wallClock(): number;
  report(message: string): void;
  /** Stores answered requests for feedback and learning. Default: none. */
  readonly learning?: (Pick<FeedbackLog, 'observe' | 'observeStopped' | 'expect'> & Partial<Pick<FeedbackLog, 'corrections'>> & Partial<Pick<Learning, 'noteUses'>>) | null; // prettier-ignore
}

/** More text does not improve the embedding. */
const MAX_EMBEDDED_CHARS = 16_384;
/** Of the budget, for texts of a request that also recalls from the agent memory. */
const TEXT_SHARE = 1 / 3;
/** Requests that may wait for their embeddings; more are written without. */
const MAX_EMBEDDING = 1000;

const NOTHING = { embedded: null, near: null, found: null, waitMs: 0, embeddingMs: 0, nearMs: 0, searchMs: 0 };

export function createRequestMemory(
  memory: Memory,
  { now, wallClock, report, learning = null }: RequestMemoryContext,
): RequestMemory {
  /** Writes in progress, with their calls. */
  const pending = new Map<Promise<void>, RememberedCall>();
  /** Calls in progress; those of erased users and tenants are not written. */
  const calls = new Set<{ readonly call: RememberedCall; isErased: boolean }>();
  let hasFailed = false;
  const agents: AgentWriter = createAgentWriter(memory, report);
  const ownerOf = ({ tenant, user, requestId }: RememberedCall): DataOwner => ({ tenant, userId: user, requestId });

  const unregister = memory.erasure.register({
    name: 'requests in progress',
    async erase(subject) {
      for (const one of calls) if (covers(subject, ownerOf(one.call))) one.isErased = true;
      await Promise.allSettled(pending.keys()); // answers that ended before are written, where the memory erases them
    },
    count: async (subject) =>
      [...calls].filter(({ call, isErased }) => !isErased && covers(subject, ownerOf(call))).length,
  });

  const toolRecorders = createToolRecorders(memory, wallClock);
  const unregisterTools = memory.erasure.register(toolRecorders.erasure);

  const embed = (text: string): Promise<EmbeddedText | null> =>
    text === '' ? Promise.resolve(null) : memory.embedLater(clipText(text, MAX_EMBEDDED_CHARS).text);

  /** Reports an error instead of failing the request. */
  const quietly = async <T>(doing: string, work: Promise<T>): Promise<T | null> => {
    try {
      return await work;
    } catch (error) {
      // Once, because a full disk would fail every request.
      if (!hasFailed) report(`${doing} failed: ${messageOf(error)}`);
      hasFailed = true;
      return null;
    }
  };

  /** The earlier questions of a conversation that recalls: those of the prompt, or of a session whose prompt has only the last one. */
  async function turnsOf({ tenant, session, prompt, wish }: RememberedCall): Promise<readonly string[]> {
    if (wish === null) return [];
    const turns = earlierQuestions(prompt);
    if (turns.length > 0 || session === null || !isFollowUp(queryOf(prompt))) return turns;
    // The turn before may not be written yet.
    const isSession = ([, call]: readonly [unknown, RememberedCall]): boolean => call.tenant === tenant && call.session === session; // prettier-ignore
    await Promise.allSettled([...pending].filter(isSession).map(([work]) => work));
    const stored = await quietly('reading a session', memory.sessions.turns(tenant, session, MAX_EARLIER));
    return (stored ?? []).map(({ query }) => query).toReversed();
  }

  /** One call to the memory thread for embedding, neighbours and search. */
  async function ask(
    call: RememberedCall,
    search?: MemoryQuestion['search'],
  ): Promise<MemoryReply & { waitMs: number }> {
    const text = queryOf(call.prompt);
    if (text === '') return NOTHING;
    const startMs = now();
    const near = call.near ?? null;
    const reply = await memory.ask(call.tenant, {
      text: clipText(text, MAX_EMBEDDED_CHARS).text,
      ...(near === null ? {} : { near }),
      ...(search === undefined ? {} : { search }),
    });
    const workMs = reply.embeddingMs + reply.nearMs + reply.searchMs;
    return { ...reply, waitMs: Math.max(0, now() - startMs - workMs) };
  }

  /** Packs texts with the tokenizer of the answering model; takes fewer where its context has no room for them. */
  async function pack(
    { tenant, prompt, reader = null }: RememberedCall,
    results: readonly MemoryResult[],
    query: string,
    wished: number,
    correction: CorrectedPair | null,
  ): Promise<{ readonly context: PackedContext; readonly tokenBudget: number }> {
    const countTokens = reader?.countTokens ?? estimateTokens;
    let tokenBudget = wished;
    for (;;) {
      const context = await packResults(memory.store, tenant, results, { tokenBudget, countTokens, query });
      if (reader === null || context.sources.length === 0) return { context, tokenBudget };
      const excess = await reader.excessTokens(promptWith(prompt, context, correction));
      if (excess === 0) return { context, tokenBudget };
      tokenBudget = Math.max(0, context.numTokens - excess);
    }
  }

  /** Adds what the agent memory knows after the texts, in the rest of the budget. */
  async function packAgents(
    call: RememberedCall,
    { context, tokenBudget }: { readonly context: PackedContext; readonly tokenBudget: number },
    turns: readonly string[],
    wished: number,
    correction: CorrectedPair | null,
  ): Promise<{ readonly context: PackedContext; readonly tokenBudget: number }> {
    const { tenant, user, session, prompt, reader = null } = call;
    const text = queryOf(prompt);
    const before = context.sources.length;
    for (let left = wished - context.numTokens; left > 0 && text.trim() !== '';) {
      const known = await memory.agents.recall(
        { tenant, userId: user },
        {
          text: clipText(text, MAX_EMBEDDED_CHARS).text,
          turns,
          tokenBudget: left,
          countTokens: reader?.countTokens ?? estimateTokens,
          sessionId: session,
          hasHistory: earlierQuestions(prompt).length > 0,
          firstNumber: before + 1,
        },
      );
      if (known.text === '') break;
      const joined = {
        text: `${context.text}${known.text}`,
        sources: [...context.sources, ...known.sources],
        numTokens: context.numTokens + known.numTokens,
        numLeftOut: context.numLeftOut + known.numLeftOut,
      };
      const excess = (await reader?.excessTokens(promptWith(prompt, joined, correction))) ?? 0;
      if (excess === 0) return { context: joined, tokenBudget: wished };
      left = Math.min(left, known.numTokens) - excess;
    }
    return { context, tokenBudget };
  }

  /** The correction for the question; a failure is reported and leaves the prompt as it is. */
  async function recallCorrection(
    { tenant, user, prompt, corrections = true, reader = null }: RememberedCall,
    embedded: EmbeddedText | null,
  ): Promise<CorrectedPair | null> {
    const question = queryOf(prompt).trim();
    const pairs = learning?.corrections;
    // A correction of an answer about one image is wrong for the same question about another.
    if (!corrections || pairs === undefined || question === '' || imagesOf(prompt).length > 0) return null;
    const isInSpace = embedded?.space === memory.spaces.texts;
    const recalling = pairs.recall(tenant, user, question, async () => (isInSpace ? embedded : memory.embed(question)));
    const pair = await quietly('recalling corrections', recalling);
    // A request that fits the context without it must not fail.
    return pair === null || (await reader?.excessTokens(addExchange(prompt, pair))) ? null : pair;
  }

  /** Without recall, only the router needs the embedding, and can do without. */
  async function lookUp(call: RememberedCall): Promise<Recalled> {
    const { prompt, wish, isRouted = false } = call;
    const turns = await turnsOf(call);
    const asked =
      wish === null
        ? ((isRouted ? await quietly('embedding', ask(call)) : null) ?? NOTHING)
        : await ask(call, { ...searchOf(wish), ...(turns.length === 0 ? {} : { turns: [...turns] }) });
    const { embedded, near, found, waitMs, embeddingMs, nearMs, searchMs } = asked;
    const startMs = now();
    const question = queryOf(prompt);
    const context = contextOf(question, turns);
    const isQuestion = context === '';
    const correction = await recallCorrection(call, isQuestion ? embedded : null);
    const budget = wish === null ? 0 : wish.remember ? Math.floor(wish.tokenBudget * TEXT_SHARE) : wish.tokenBudget;
    const packedTexts =
      wish === null ? null : await pack(call, found?.results ?? [], `${question} ${context}`, budget, correction);
    const packed =
      packedTexts === null || !wish!.remember
        ? packedTexts
        : await packAgents(call, packedTexts, turns, wish!.tokenBudget, correction);
    const packMs = now() - startMs;
    const texts = new Map(found?.results.map(({ record: { id }, text }) => [id, text]));
    if (correction !== null) texts.set(correction.id, correction.answer);
    const recall = reportOf(packed, correction);
    return {
      prompt: promptWith(prompt, packed?.context ?? null, correction),
      trainingPrompt: promptWith(prompt, packed?.context ?? null, null),
      sources: recall?.sources ?? [],
      recall,
      embedded,
      isQuestion,
      similarities: found?.results.flatMap(({ similarity }) => (similarity === null ? [] : [similarity])) ?? [],
      texts,
      candidates: found?.candidates ?? [],
      near,
      waitMs,
      embeddingMs,
      retrievalMs: searchMs + packMs,
      nearMs,
    };
  }

  /** Turns are recalled like texts, so they are in the space of texts. */
  async function embedTurn(query: string, embedded: EmbeddedText | null, isCrowded: boolean) {
    // Null before the embedder is there: the memory notes that texts were stored without.
    const isEmpty = embedded === null && memory.spaces.texts !== null;
    const isInSpace = isCrowded || isEmpty || embedded?.space === memory.spaces.texts;
    const made = isInSpace ? embedded : await quietly('embedding', memory.embed(clipText(query, MAX_TURN_TEXT).text));
    return { embedding: made?.vector ?? null, space: made?.space ?? null };
  }

  async function writeDown(
    call: RememberedCall,
    recalled: Recalled,
    outcome: CallOutcome,
    { totalMs, endMs }: { readonly totalMs: number; readonly endMs: number },
    onDurable: () => void,
  ): Promise<void> {
    const { tenant, requestId, session } = call;
    const served = outcome.served ?? null;
    const model = served?.model ?? call.model;
    const query = queryOf(call.prompt);
    const isCrowded = pending.size > MAX_EMBEDDING;
    /** Before everything that can wait: the next request of the session may come with the end of this answer. */
    async function storeTurn(sessionId: string, embedded: EmbeddedText | null): Promise<void> {
      const turn = {
        query: clipText(query, MAX_TURN_TEXT).text,
        answer: clipText(outcome.text, MAX_TURN_TEXT).text,
        requestId,
        ...(await embedTurn(query, (recalled.isQuestion ? recalled.embedded : null) ?? embedded, isCrowded)),
      };
      const about = embedded === null ? {} : { contextEmbedding: embedded.vector, space: embedded.space };
      const whose = call.user === null ? {} : { userId: call.user };
      const candidate = served?.choice.candidate;
      const activeAdapter = candidate?.kind === 'adapter' ? candidate.adapter : (call.adapter ?? null);
      const change = { ...about, ...whose, activeAdapter };
      await quietly('storing a session turn', memory.addTurn(tenant, sessionId, turn, change));
    }
    // Requests are compared in one space, whether or not they recalled texts.
    const reused =
      recalled.isQuestion && recalled.embedded?.space === memory.spaces.requests ? recalled.embedded : null;
    const embedded = reused ?? (isCrowded ? null : await quietly('embedding', embed(query)));
    await quietly('writing to the memory', memory.meet(tenant));
    if (session !== null && outcome.error === null) await storeTurn(session, embedded);
    if (call.wish?.remember === true && outcome.error === null) {
      await quietly('storing messages', agents.write(call, outcome, recalled.sources));
    }
    if (memory.audit.durability === 'batch') onDurable();
    // An answer that waits for its entry does not wait for another answer.
    const asksOthers = memory.audit.durability === 'batch' && outcome.error === null && outcome.text !== '';
    const opinions = (asksOthers ? await call.opinion?.(model, outcome.text) : null) ?? {};
    const estimate = scoreAnswer(outcome, opinions);
    const entry = {
      requestId,
      sessionId: session,
      userId: call.user,
      timestampMs: Math.floor(wallClock()),
      model,
      routing: served === null ? null : routingOf(served.choice),
      quality: null,
      ...(estimate === null ? {} : { estimate }),
      ...(outcome.reflection == null ? {} : { reflection: reflectionOf(outcome.reflection) }),
      latency: {
        waitMs: recalled.waitMs,
        embeddingMs: recalled.embeddingMs,
        retrievalMs: recalled.retrievalMs,
        policyMs: served?.choice.policyMs ?? null,
        routingMs: recalled.nearMs + (served?.choice.routingMs ?? 0),
        queueMs: outcome.queueMs,
        promptMs: outcome.promptMs,
        generationMs: outcome.generationMs,
        totalMs,
        ttftMs: outcome.ttftMs,
        writeMs: now() - endMs,
      },
      contextDocIds: recalled.sources.map(({ id }) => id),
      query,
      response: outcome.text,
      numPromptTokens: outcome.numPromptTokens,
      numOutputTokens: outcome.numOutputTokens,
      queryEmbedding: embedded?.vector ?? null,
      responseEmbedding: null,
      space: embedded?.space ?? null,
      error: outcome.error && {
        code: outcome.error.code,
        message: clipText(outcome.error.message, 4096).text,
        isRetryable: outcome.error.isRetryable,
      },
    };
    const embedAnswer = (text: string) =>
      quietly('embedding', memory.embedLater(clipText(text, MAX_EMBEDDED_CHARS).text));
    const late = embedded === null || isCrowded ? [] : [lateParts({ memory, tenant, question: embedded, opinions }, outcome, embedAnswer)]; // prettier-ignore
    void memory.audit.enqueue(tenant, entry, ...late);
    learning?.noteUses?.(tenant, usedPatterns(recalled, served));
    const toTrajectory = () =>
      trajectoryOf({ ...call, model }, recalled, outcome, {
        createdMs: Math.floor(wallClock()),
        query,
        estimate,
        // The space of its sources, if it recalled any.
        embedded: recalled.embedded ?? embedded,
      });
    if (outcome.error === null) learning?.observe(tenant, toTrajectory());
    else if (outcome.error.code === 'aborted' && outcome.text !== '') learning?.observeStopped(tenant, toTrajectory());
    if (memory.audit.durability === 'request') await quietly('writing the audit log', memory.audit.sync());
  }

  async function settle(): Promise<void> {
    await Promise.allSettled(pending.keys());
  }

  return {
    async begin(call) {
      checkTenantIsCallers(call.tenant);
      if (call.wish?.remember === true && call.session === null) throw noSession();
      if (memory.erasure.isErasing(ownerOf(call))) {
        throw new RuvLLMError('conflict', 'the data of this request is being erased; try again', { isRetryable: true });
      }
      const startMs = now();
      const open = { call, isErased: false };
      calls.add(open);
      const recalled = await lookUp(call).catch((error: unknown) => {
        calls.delete(open);
        throw error;
      });
      return {
        prompt: recalled.prompt,
        sources: recalled.sources,
        recall: recalled.recall,
        embedded: recalled.embedded,
        similarities: recalled.similarities,
        near: recalled.near,
        finish(outcome) {
          calls.delete(open);
          if (open.isErased) return undefined;
          const endMs = now();
          let onDurable!: () => void;
          const durable = new Promise<void>((resolve) => (onDurable = resolve));
          const times = { totalMs: endMs - startMs, endMs };
          const work = writeDown(call, recalled, outcome, times, onDurable).finally(() => {
            onDurable();
            pending.delete(work);
          });
          pending.set(work, call);
          work.catch(() => {});
          learning?.expect(call.tenant, call.requestId, work);
          const hasTurn = call.session !== null && outcome.error === null;
          return hasTurn || memory.audit.durability === 'request' ? durable : undefined;
        },
      };
    },
    openTools: (owner) => toolRecorders.open(owner),
    errorPatterns: createErrorPatterns(memory.store, memory.services, report),
    settle,
    async close() {
      unregister();
      unregisterTools();
      await settle();
      await agents.close();
    },
  };
}
