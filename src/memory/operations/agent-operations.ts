import { z } from 'zod';
import { withoutUndefined } from '../common/store-access.ts';
import type { FactReport } from '../agents/agent-memory.ts';
import { strengthOf } from '../agents/strength.ts';
import { type Fact, SPEAKERS } from '../agents/types.ts';
import { MAX_EPISODE_CHARS } from '../agents/passages.ts';
import { name, text, uuid } from '../schemas/primitives.ts';
import { after, limit, meaning } from './inputs.ts';
import { defineOperation, notFound, type MemoryOperation } from './operation.ts';
import { plainReport } from './plain.ts';

/** Null or absent: requests that name no user. */
const userId = name.nullable().default(null);

const withStrength = (fact: Fact, nowMs: number) => ({ ...fact, strength: Number(strengthOf(fact, nowMs).toFixed(4)) });

const recall = defineOperation({
  name: 'agents.recall',
  summary: 'Notes, facts, messages and patterns for a question of a user, as quoted text with sources.',
  input: z.strictObject({
    text: meaning,
    userId,
    sessionId: name.nullable().default(null),
    tokenBudget: z.int().min(1).max(1 << 20).default(512), // prettier-ignore
  }),
  run: async (memory, tenant, { userId: user, ...query }) =>
    plainReport(await memory.agents.recall({ tenant, userId: user }, query)),
});

const facts = defineOperation({
  name: 'facts.list',
  summary: 'Current facts of the agent memory, the newest first, with their sources and strength.',
  input: z.strictObject({ userId: name.nullable().optional(), limit: limit.default(50), after: after.optional() }),
  async run(memory, tenant, query) {
    const page = await memory.agents.facts.list(tenant, withoutUndefined(query));
    const nowMs = memory.services.now();
    return { facts: page.facts.map((fact) => withStrength(fact, nowMs)), next: page.next };
  },
});

const why = defineOperation({
  name: 'facts.why',
  summary: 'Where a fact came from, what it replaced, and when it was used.',
  input: z.strictObject({ id: uuid }),
  async run(memory, tenant, { id }) {
    const report: FactReport | null = await memory.agents.why(tenant, id);
    if (report === null) throw notFound(`there is no fact ${id}`);
    return { ...report };
  },
});

const pin = defineOperation({
  name: 'facts.pin',
  summary: 'Keeps a fact from being forgotten, or lets it be forgotten again.',
  input: z.strictObject({ id: uuid, isPinned: z.boolean().default(true) }),
  async run(memory, tenant, { id, isPinned }) {
    const fact = await memory.agents.facts.pin(tenant, id, isPinned);
    if (fact === null) throw notFound(`there is no current fact ${id}`);
    return { fact };
  },
});

const forget = defineOperation({
  name: 'facts.forget',
  summary: 'Deletes facts with their history.',
  input: z.strictObject({ ids: z.array(uuid).min(1).max(1000) }),
  run: async (memory, tenant, { ids }) => ({ numForgotten: await memory.agents.facts.forget(tenant, ids) }),
});

const observe = defineOperation({
  name: 'episodes.add',
  summary: 'Stores messages of a session, each with its speaker; a later turn that remembers extracts their facts.',
  input: z.strictObject({
    sessionId: name,
    userId,
    messages: z
      .array(
        z.strictObject({
          speaker: z.enum(SPEAKERS),
          speakerName: name.nullable().default(null),
          text: text(MAX_EPISODE_CHARS, 1),
          isDistillable: z.boolean().optional(),
        }),
      )
      .min(1)
      .max(64),
  }),
  async run(memory, tenant, { sessionId, userId: user, messages }) {
    const said = messages.map(withoutUndefined);
    const episodes = await memory.agents.episodes.add({ tenant, userId: user }, sessionId, said);
    return { ids: episodes.map(({ id }) => id) };
  },
});

const session = z.strictObject({ sessionId: name, userId });

const notes = defineOperation({
  name: 'notes.list',
  summary: 'The notes of the task of a session, the oldest first.',
  input: session,
  run: async (memory, tenant, { sessionId, userId: user }) => ({
    notes: await memory.agents.working.notes({ tenant, userId: user }, sessionId),
  }),
});

const note = defineOperation({
  name: 'notes.add',
  summary: 'Adds a note to the task of a session; the oldest ones are dropped where the limit is reached.',
  input: session.extend({ text: text(1 << 16, 1) }),
  run: async (memory, tenant, { sessionId, userId: user, text: words }) => ({
    notes: await memory.agents.working.note({ tenant, userId: user }, sessionId, words),
  }),
});

const clearNotes = defineOperation({
  name: 'notes.clear',
  summary: 'Deletes the notes of a session.',
  input: session,
  run: async (memory, tenant, { sessionId, userId: user }) => ({
    isRemoved: await memory.agents.working.clear({ tenant, userId: user }, sessionId),
  }),
});

const cached = defineOperation({
  name: 'tool-cache.list',
  summary: 'Cached calls of read-only tools, the newest first, without their results.',
  input: z.strictObject({ tool: name.optional(), limit: limit.default(50), after: after.optional() }),
  run: async (memory, tenant, query) => ({ ...(await memory.toolCache.list(tenant, withoutUndefined(query))) }),
});

const cacheStats = defineOperation({
  name: 'tool-cache.stats',
  summary: 'Calls of tools since the start of the process, by where their results came from.',
  input: z.strictObject({}),
  run: async (memory, tenant) => ({ ...(await memory.toolCache.stats(tenant)) }),
});

const clearCache = defineOperation({
  name: 'tool-cache.clear',
  summary: 'Deletes the cached results of one tool, or of all.',
  input: z.strictObject({ tool: name.optional() }),
  run: async (memory, tenant, { tool }) => ({ numCleared: await memory.toolCache.clear(tenant, tool) }),
});

export const agentOperations: readonly MemoryOperation[] = [recall, facts, why, pin, forget, observe, notes, note, clearNotes, cached, cacheStats, clearCache]; // prettier-ignore
