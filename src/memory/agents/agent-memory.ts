import { embedQuestion } from '../search/follow-up.ts';
import type { MemoryServices } from '../common/services.ts';
import { checkTenantIsCallers } from '../state-tenant.ts';
import type { Embedder } from '../embedder-types.ts';
import type { EmbeddedText } from '../search/embed-text.ts';
import type { MemoryStore } from '../types.ts';
import { createEpisodes, type Episodes } from './episodes.ts';
import { createFacts, type Facts } from './facts.ts';
import { createRecall, type RecallTiers, type SearchPatterns } from './recall.ts';
import { strengthOf } from './strength.ts';
import type { AgentScope, Fact } from './types.ts';
import { createWorkingMemory, type WorkingMemory } from './working.ts';

/** Where a fact came from, what it replaced, and when it was used. */
export interface FactReport {
  readonly fact: Fact;
  /** 0 to 1; see `strengthOf`. */
  readonly strength: number;
  /** The message it was extracted from; null: erased. */
  readonly message: string | null;
  /** The newest first; of a replaced fact, the versions before it. */
  readonly replaced: readonly Fact[];
  /** Null: this is the current one. */
  readonly replacedBy: Fact | null;
}

/** The memory of agents in tiers: notes of the task, messages, facts, and the patterns of the reasoning bank. */
export interface AgentMemory {
  readonly episodes: Episodes;
  readonly facts: Facts;
  readonly working: WorkingMemory;
  /** Mixes the tiers under a token budget, with sources. */
  readonly recall: RecallTiers;
  /** Recalls patterns of other nodes, too; returns a function that stops it. */
  usePatterns(search: SearchPatterns): () => void;
  /** Null: not found. */
  why(tenant: string, factId: string): Promise<FactReport | null>;
  /** Resolves when no extraction of facts is running or waiting in this process. */
  idle(): Promise<void>;
  /** Counts background work for `idle`. */
  track(work: Promise<unknown>): void;
}

export interface AgentMemoryContext {
  readonly store: MemoryStore;
  readonly services: MemoryServices;
  /** Read by each recall, because it may come late. */
  readonly embedder: Embedder | null;
  embed(text: string): Promise<EmbeddedText | null>;
  embedRequest(text: string): Promise<EmbeddedText | null>;
  /** Notes that a tenant has data. */
  meet(tenant: string): Promise<void>;
}

export function createAgentMemory(context: AgentMemoryContext): AgentMemory {
  const { store, services, embed, embedRequest, meet } = context;
  const episodes = createEpisodes({ store, services, embed });
  const facts = createFacts({ store, services, embed });
  const working = createWorkingMemory({ store, services });
  let patterns: SearchPatterns | null = null;
  const recall = createRecall({
    store,
    services,
    working,
    embedQuestion: (text, turns) => embedQuestion(context.embedder, text, turns),
    embedRequest,
    patterns: () => patterns,
  });
  const running = new Set<Promise<unknown>>();
  const enter = async ({ tenant }: AgentScope): Promise<void> => {
    checkTenantIsCallers(tenant);
    await meet(tenant);
  };

  return {
    episodes: {
      ...episodes,
      async add(scope, sessionId, messages) {
        await enter(scope);
        return episodes.add(scope, sessionId, messages);
      },
    },
    facts: {
      ...facts,
      async assert(scope, ...rest) {
        await enter(scope);
        return facts.assert(scope, ...rest);
      },
    },
    working: {
      ...working,
      async note(scope, ...rest) {
        await enter(scope);
        return working.note(scope, ...rest);
      },
    },
    recall,
    usePatterns(search) {
      patterns = search;
      return () => {
        if (patterns === search) patterns = null;
      };
    },
    async why(tenant, factId) {
      const fact = await facts.get(tenant, factId);
      if (fact === null) return null;
      const [episode, history, current] = await Promise.all([
        episodes.get(tenant, fact.episodeId),
        facts.history(tenant, factId),
        facts.current(tenant, factId),
      ]);
      const at = fact.isCurrent ? -1 : history.findIndex(({ id }) => id === fact.id);
      return {
        fact,
        strength: strengthOf(fact, services.now()),
        message: episode?.text ?? null,
        replaced: history.slice(at + 1),
        replacedBy: fact.isCurrent ? null : (history[at - 1] ?? current),
      };
    },
    async idle() {
      while (running.size > 0) await Promise.allSettled(running);
    },
    track(work) {
      const done = work.finally(() => running.delete(done));
      done.catch(() => {});
      running.add(done);
    },
  };
}
