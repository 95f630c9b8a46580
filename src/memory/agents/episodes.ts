import { RuvLLMError } from '../../core/errors.ts';
import { clipText } from '../common/text-limits.ts';
import type { MemoryServices } from '../common/services.ts';
import type { EmbeddedText } from '../search/embed-text.ts';
import type { FieldCondition, MemoryRecord, MemoryStore } from '../types.ts';
import { MAX_DISTILLED_CHARS, type Passage, passageFromRecord, passageToRecord, toEpisode } from './episode-record.ts';
import { toPassages } from './passages.ts';
import { AGENT_SOURCE, type AgentScope, type Episode, type NewEpisode } from './types.ts';

/** The messages of sessions, in passages that are found by words and meaning. */
export interface Episodes {
  /** Stores messages in order; returns them. Empty ones are left out. */
  add(scope: AgentScope, sessionId: string, messages: readonly NewEpisode[]): Promise<readonly Episode[]>;
  /** Messages whose facts were not extracted yet, the oldest first. */
  undistilled(scope: AgentScope, limit: number): Promise<readonly Episode[]>;
  /** Null: erased meanwhile. */
  get(tenant: string, id: string): Promise<Episode | null>;
  /** Says that its facts are stored. */
  markDistilled(tenant: string, id: string): Promise<void>;
  /** Counts a failed extraction; after `MAX_TRIES` it is not tried again. */
  markFailed(tenant: string, id: string): Promise<void>;
  /** Drops what this process knows of a tenant, after an erasure. */
  forget(tenant: string): void;
}

export interface EpisodesContext {
  readonly store: MemoryStore;
  readonly services: MemoryServices;
  /** Null: no tokens, or no embedder. */
  embed(text: string): Promise<EmbeddedText | null>;
}

/** A message whose extraction failed more often is left as it is: it would fail forever. */
const MAX_TRIES = 3;
/** Part of the whole message in the vector of a passage, which says what a passage without a subject is about. */
const MESSAGE_WEIGHT = 0.3;

const OURS: FieldCondition = { field: 'source', is: '=', value: AGENT_SOURCE };

/** The conditions of everything that a scope may see. */
export const scopeConditions = ({ userId }: AgentScope): FieldCondition[] => [
  OURS,
  { field: 'userId', is: '=', value: userId },
];

export function createEpisodes({ store, services, embed }: EpisodesContext): Episodes {
  /** The time of the last message of each tenant, so that times never go back. */
  const lastMs = new Map<string, number>();

  async function nextMs(tenant: string): Promise<number> {
    if (!lastMs.has(tenant)) {
      const query = { kinds: ['agent-step'], filter: { fields: [OURS] }, order: 'newest', limit: 1 } as const;
      const [newest] = (await store.find(tenant, query)).records;
      if (!lastMs.has(tenant)) lastMs.set(tenant, newest?.createdMs ?? -1);
    }
    const timeMs = Math.max(Math.floor(services.now()), lastMs.get(tenant)! + 1);
    lastMs.set(tenant, timeMs);
    return timeMs;
  }

  async function nextTurn({ tenant, userId }: AgentScope, sessionId: string): Promise<number> {
    const fields = [...scopeConditions({ tenant, userId }), { field: 'sessionId', is: '=', value: sessionId } as const];
    const { records } = await store.find(tenant, { kinds: ['agent-step'], filter: { fields }, order: 'newest', limit: 1 }); // prettier-ignore
    return records.length === 0 ? 0 : Number(records[0]!.fields['turn'] ?? 0) + 1;
  }

  /** The vectors of passages, moved towards that of their message. */
  async function embedAll(passages: readonly string[], message: string): Promise<readonly (EmbeddedText | null)[]> {
    const [whole, ...parts] = await Promise.all([passages.length === 1 ? null : embed(message), ...passages.map(embed)]); // prettier-ignore
    return parts.map((part) => {
      if (part === null || whole == null) return part;
      const sum = part.vector.map((value, i) => value + MESSAGE_WEIGHT * whole.vector[i]!);
      const length = Math.hypot(...sum);
      return length === 0 ? part : { vector: sum.map((value) => value / length), space: part.space };
    });
  }

  async function first(tenant: string, id: string): Promise<MemoryRecord | null> {
    const [record] = await store.get(tenant, [id]);
    return record?.kind === 'agent-step' && record.fields['source'] === AGENT_SOURCE ? record : null;
  }

  async function change(tenant: string, id: string, changed: (passage: Passage) => Partial<Passage>): Promise<void> {
    const record = await first(tenant, id);
    if (record === null) return;
    const passage = passageFromRecord(record);
    const embedded = record.vector === null ? null : { vector: record.vector, space: record.space! };
    const put = passageToRecord({ ...passage, ...changed(passage) }, tenant, embedded);
    await store.put([{ ...put, ifVersion: record.version }]);
  }

  return {
    async add(scope, sessionId, messages) {
      const episodes: Episode[] = [];
      for (const {
        speaker,
        speakerName = null,
        text,
        requestId = null,
        isDistillable = speaker !== 'assistant',
      } of messages) {
        if ((speaker === 'tool' || speaker === 'document') && (speakerName ?? '') === '') {
          throw new RuvLLMError('invalid_option', `words of a ${speaker} require its name`, { data: { option: 'speakerName' } }); // prettier-ignore
        }
        const passages = toPassages(text);
        if (passages.length === 0) continue;
        const message = clipText(text, MAX_DISTILLED_CHARS).text;
        const vectors = await embedAll(passages, message);
        const [saidMs, turn] = [await nextMs(scope.tenant), await nextTurn(scope, sessionId)];
        const episodeId = services.newId();
        const stored = passages.map((words, part): Passage => ({
          id: part === 0 ? episodeId : services.newId(),
          episodeId,
          part,
          text: words,
          speaker,
          speakerName: speakerName === null ? null : clipText(speakerName, 256).text,
          sessionId,
          userId: scope.userId,
          requestId,
          turn,
          saidMs,
          isDistilled: part === 0 && isDistillable ? false : null,
          message: part === 0 && isDistillable ? message : null,
          numTries: 0,
        }));
        await store.put(stored.map((passage, i) => ({ ...passageToRecord(passage, scope.tenant, vectors[i]!), ifVersion: 0 }))); // prettier-ignore
        episodes.push(toEpisode(stored[0]!));
      }
      return episodes;
    },
    async undistilled(scope, limit) {
      const fields = [...scopeConditions(scope), { field: 'isDistilled', is: '=', value: false } as const];
      const { records } = await store.find(scope.tenant, { kinds: ['agent-step'], filter: { fields }, order: 'oldest', limit }); // prettier-ignore
      return records.map((record) => toEpisode(passageFromRecord(record)));
    },
    async get(tenant, id) {
      const record = await first(tenant, id);
      return record === null ? null : toEpisode(passageFromRecord(record));
    },
    forget: (tenant) => void lastMs.delete(tenant),
    markDistilled: (tenant, id) => change(tenant, id, () => ({ isDistilled: true })),
    markFailed: (tenant, id) =>
      change(tenant, id, ({ numTries }) => ({ numTries: numTries + 1, isDistilled: numTries + 1 >= MAX_TRIES })),
  };
}
