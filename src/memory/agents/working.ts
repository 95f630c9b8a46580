import { RuvLLMError } from '../../core/errors.ts';
import { nameId } from '../common/ids.ts';
import { retryConflict } from '../common/retry-conflict.ts';
import type { MemoryServices } from '../common/services.ts';
import { statePut } from '../common/store-access.ts';
import type { MemoryRecord, MemoryStore } from '../types.ts';
import type { AgentScope } from './types.ts';

/** A note of the task in progress. */
export interface WorkingNote {
  readonly text: string;
  readonly notedMs: number;
}

/** The task of one session: a few notes that every prompt of it has. */
export interface WorkingMemory {
  /** Adds a note; the oldest ones go where the limit is reached. Returns all. */
  note(scope: AgentScope, sessionId: string, text: string): Promise<readonly WorkingNote[]>;
  /** The oldest first. */
  notes(scope: AgentScope, sessionId: string): Promise<readonly WorkingNote[]>;
  clear(scope: AgentScope, sessionId: string): Promise<boolean>;
}

/** Of all notes of a session. */
export const MAX_WORKING_TOKENS = 512;
const CHARS_PER_TOKEN = 4;
const NAME = 'working-memory';
/** Notes of an unused session expire. */
const LIFE_MS = 30 * 86_400_000;

const tokensOf = ({ text }: WorkingNote): number => Math.ceil(text.length / CHARS_PER_TOKEN);

export function createWorkingMemory({
  store,
  services,
}: {
  readonly store: MemoryStore;
  readonly services: MemoryServices;
}): WorkingMemory {
  // prettier-ignore
  const idOf = ({ tenant, userId }: AgentScope, sessionId: string): string =>
    nameId(services.sha256, tenant, NAME, userId === null ? 'any' : `user ${userId}`, sessionId);
  const notesOf = (record: MemoryRecord | null | undefined): readonly WorkingNote[] =>
    record == null || (record.expiresMs !== null && record.expiresMs <= services.now())
      ? []
      : ((record.body as { readonly notes?: readonly WorkingNote[] }).notes ?? []);

  return {
    async note(scope, sessionId, text) {
      const note = { text: text.toWellFormed().trim(), notedMs: Math.floor(services.now()) };
      const numTokens = tokensOf(note);
      if (numTokens === 0 || numTokens > MAX_WORKING_TOKENS) {
        throw new RuvLLMError('invalid_option', `a note has ${text.length} characters; 1 to ${MAX_WORKING_TOKENS * CHARS_PER_TOKEN} fit`, { data: { option: 'text', length: text.length } }); // prettier-ignore
      }
      const id = idOf(scope, sessionId);
      return retryConflict(async () => {
        const [record] = await store.get(scope.tenant, [id]);
        const notes = [...notesOf(record), note];
        while (notes.reduce((sum, one) => sum + tokensOf(one), 0) > MAX_WORKING_TOKENS) notes.shift();
        const place = { id, tenant: scope.tenant, expiresMs: note.notedMs + LIFE_MS, ifVersion: record?.version ?? 0 };
        await store.put([statePut(place, { notes }, { name: NAME, sessionId, userId: scope.userId })]);
        return notes;
      });
    },
    notes: async (scope, sessionId) => notesOf((await store.get(scope.tenant, [idOf(scope, sessionId)]))[0]),
    clear: async (scope, sessionId) => (await store.delete(scope.tenant, [idOf(scope, sessionId)])) > 0,
  };
}
