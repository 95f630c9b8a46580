import { z } from 'zod';
import { withoutUndefined } from '../common/store-access.ts';
import { name } from '../schemas/primitives.ts';
import { after, embedMeaning, includeVectors, limit, meaning } from './inputs.ts';
import { defineOperation, notFound, refuseInput, type MemoryOperation } from './operation.ts';
import { plainSession, plainTurn } from './plain.ts';

const list = defineOperation({
  name: 'sessions.list',
  summary: 'Sessions by user, adapter or meaning, the newest or nearest first.',
  input: z.strictObject({
    userId: name.optional(),
    adapter: name.optional(),
    similarTo: meaning.optional(),
    limit: limit.default(50),
    after: after.optional(),
    includeVectors,
  }),
  async run(memory, tenant, { similarTo, includeVectors: hasVectors, ...query }) {
    if (similarTo === undefined) {
      const { sessions, next } = await memory.sessions.find(tenant, withoutUndefined(query));
      return { sessions: sessions.map((one) => ({ ...plainSession(one, hasVectors), similarity: null })), next };
    }
    if (query.after !== undefined)
      throw refuseInput('after works in the order by time only, not with similarTo', 'after');
    const { vector, space } = await embedMeaning(memory, similarTo, 'similarTo');
    const { userId, adapter, limit: k } = query;
    const near = await memory.sessions.similar(tenant, { vector, space, k, ...withoutUndefined({ userId, adapter }) });
    return {
      sessions: near.map(({ session, similarity }) => ({ ...plainSession(session, hasVectors), similarity })),
      next: null,
    };
  },
});

const show = defineOperation({
  name: 'sessions.show',
  summary: 'One session and its newest turns.',
  input: z.strictObject({ sessionId: name, limit: limit.default(20), includeVectors }),
  async run(memory, tenant, { sessionId, limit: numTurns, includeVectors: hasVectors }) {
    const session = await memory.sessions.get(tenant, sessionId);
    if (session === null) throw notFound(`there is no session ${JSON.stringify(sessionId)}`);
    const turns = await memory.sessions.turns(tenant, sessionId, numTurns);
    return { session: plainSession(session, hasVectors), turns: turns.map((turn) => plainTurn(turn, hasVectors)) };
  },
});

const rm = defineOperation({
  name: 'sessions.rm',
  summary: 'Deletes a session and its turns.',
  input: z.strictObject({ sessionId: name }),
  async run(memory, tenant, { sessionId }) {
    if (await memory.sessions.remove(tenant, sessionId)) return { sessionId, isRemoved: true };
    throw notFound(`there is no session ${JSON.stringify(sessionId)}`);
  },
});

export const sessionOperations: readonly MemoryOperation[] = [list, show, rm];
