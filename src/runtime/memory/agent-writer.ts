import type { ChatMessage } from '../../chat/types.ts';
import { covers } from '../../core/erasure.ts';
import { RuvLLMError } from '../../core/errors.ts';
import { createSerialQueues } from '../../core/serial-queues.ts';
import type { AgentScope, Episode, NewEpisode } from '../../memory/agents/types.ts';
import type { Memory } from '../../memory/memory.ts';
import type { PackedSource } from '../../memory/search/pack.ts';
import { isChat, type Prompt } from '../prompt.ts';
import { FACTS_SCHEMA, factsPrompt, MAX_FACT_TOKENS, readFacts } from './distil-facts.ts';
import type { CallOutcome, GenerateJson, RememberedCall } from './types.ts';

/** Stores the messages of sessions that ask for it, and extracts their facts in the background. */
export interface AgentWriter {
  /** Resolves when the messages are stored; their facts follow. */
  write(call: RememberedCall, outcome: CallOutcome, sources: readonly PackedSource[]): Promise<void>;
  /** Stops extractions; the next turn continues with the messages that are left. */
  close(): Promise<void>;
}

/** Messages of one extraction run; more wait for the next turn. */
const MAX_MESSAGES = 16;
/** Facts whose attributes the model may use again. */
const MAX_KNOWN_FACTS = 64;

export function createAgentWriter(memory: Memory, report: (message: string) => void): AgentWriter {
  const { agents, erasure } = memory;
  const queues = createSerialQueues();
  /** Extractions that run or wait, by what aborts them. */
  const running = new Map<AbortController, { readonly scope: AgentScope; readonly work: Promise<void> }>();
  let isClosed = false;

  const unregister = erasure.register({
    name: 'extraction of facts',
    async erase(subject) {
      const ofTenant = [...running].filter(([, { scope }]) => subject.tenant === scope.tenant);
      for (const [abort] of ofTenant) abort.abort();
      // Facts that were written meanwhile are erased with the memory.
      await Promise.allSettled(ofTenant.map(([, { work }]) => work));
    },
    count: async (subject) =>
      [...running].filter(([{ signal }, { scope }]) => !signal.aborted && covers(subject, scope)).length,
  });

  async function distil(
    scope: AgentScope,
    episode: Episode,
    prompt: Prompt,
    generate: GenerateJson,
    signal: AbortSignal,
  ) {
    // prettier-ignore
    const { facts: known } = await agents.facts.list(scope.tenant, { userId: scope.userId, limit: MAX_KNOWN_FACTS });
    const attributes = [...new Set(known.map(({ attribute }) => attribute))];
    const ask = factsPrompt(episode, attributes, isChat(prompt));
    const answer = await generate(ask, FACTS_SCHEMA, { maxTokens: MAX_FACT_TOKENS, signal });
    // The message may have been erased while the model read it: nothing of it may be written.
    if (signal.aborted || (await agents.episodes.get(scope.tenant, episode.id)) === null) return;
    for (const [order, statement] of readFacts(answer, episode.text).entries()) {
      await agents.facts.assert(scope, statement, episode, order);
    }
    // After the facts: a crash in between extracts them again, and the same facts change nothing.
    await agents.episodes.markDistilled(scope.tenant, episode.id);
  }

  async function distilAll(
    scope: AgentScope,
    prompt: Prompt,
    generate: GenerateJson,
    signal: AbortSignal,
  ): Promise<void> {
    // prettier-ignore
    if (signal.aborted) return;
    for (const episode of await agents.episodes.undistilled(scope, MAX_MESSAGES)) {
      if (signal.aborted) return;
      try {
        await distil(scope, episode, prompt, generate, signal);
      } catch (error) {
        const isStopped = error instanceof RuvLLMError && ['aborted', 'not_loaded'].includes(error.code);
        if (signal.aborted || isStopped) return;
        await agents.episodes.markFailed(scope.tenant, episode.id);
        throw error;
      }
    }
  }

  function start(scope: AgentScope, prompt: Prompt, generate: GenerateJson): void {
    const abort = new AbortController();
    const key = JSON.stringify([scope.tenant, scope.userId]);
    const work = queues.run(key, () => distilAll(scope, prompt, generate, abort.signal)).finally(() => running.delete(abort)); // prettier-ignore
    running.set(abort, { scope, work });
    agents.track(work);
    work.catch((error: unknown) => report(`extracting facts failed: ${error instanceof Error ? error.message : ''}`));
  }

  return {
    async write(call, outcome, sources) {
      const { tenant, user, session, requestId, prompt, generateJson = null } = call;
      const scope = { tenant, userId: user };
      const factIds = sources.flatMap(({ id, kind }) => (kind === 'fact' ? [id] : []));
      if (factIds.length > 0) await agents.facts.noteUses(tenant, factIds);
      await agents.episodes.add(scope, session!, messagesOf(prompt, outcome.text, requestId));
      if (generateJson !== null && !isClosed) start(scope, prompt, generateJson);
    },
    async close() {
      isClosed = true;
      unregister();
      for (const abort of running.keys()) abort.abort();
      await queues.settle();
    },
  };
}

/** The new messages of a call: those after the last answer in its prompt, and its own answer. */
function messagesOf(prompt: Prompt, answer: string, requestId: string): NewEpisode[] {
  const said: NewEpisode[] = [];
  if (typeof prompt === 'string') said.push({ speaker: 'user', text: prompt, requestId });
  else if (isChat(prompt)) {
    const messages = prompt as readonly ChatMessage[];
    const last = messages.findLastIndex(({ role }) => role === 'assistant');
    const calls = new Map(
      messages.flatMap(({ toolCalls = [] }) => toolCalls.map(({ id, name }) => [id, name] as const)),
    );
    for (const { role, content, name, toolCallId } of messages.slice(last + 1)) {
      if (role === 'user') said.push({ speaker: 'user', text: content, requestId });
      if (role !== 'tool') continue;
      const tool = name ?? calls.get(toolCallId ?? '') ?? 'unnamed';
      said.push({ speaker: 'tool', speakerName: tool, text: content, requestId });
    }
  }
  if (answer !== '') said.push({ speaker: 'assistant', text: answer, requestId });
  return said;
}
