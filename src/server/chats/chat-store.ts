import type { ErasurePart } from '../../core/erasure.ts';
import { RuvLLMError } from '../../core/errors.ts';
import { createSerialQueues } from '../../core/serial-queues.ts';
import type { StoredHead, StoredRecords } from '../../runtime/lower-layers.ts';

/** A conversation of the dashboard, without its messages. */
export interface ChatEntry {
  readonly id: string;
  readonly title: string;
  readonly isPinned: boolean;
  /** Milliseconds since 1970. */
  readonly updatedMs: number;
  /** 1 at first; each write adds 1. */
  readonly version: number;
}

export interface NewChat extends Pick<ChatEntry, 'title' | 'isPinned'> {
  /** The version it replaces, 0 for none. */
  readonly version: number;
  /** The requests it contains, with which it is erased. */
  readonly requestIds: readonly string[];
  /** The page's own format. */
  readonly content: unknown;
}

/** Whose conversations: those of one key of a tenant, or of all users of an open server, which keys of its tenant see later. */
export interface ChatOwner {
  readonly tenant: string;
  readonly keyId: string | null;
}

/** Conversations of the dashboard. They never expire, and no limit evicts them. */
export interface ChatStore {
  /** Unordered. */
  list(owner: ChatOwner): Promise<readonly ChatEntry[]>;
  /** Those whose title or messages contain the words, in any case, the last changed first. See `MAX_SEARCH_CHARS`. */
  search(owner: ChatOwner, words: string): Promise<readonly ChatEntry[]>;
  /** Null: not found. */
  find(owner: ChatOwner, id: string): Promise<(ChatEntry & { readonly content: unknown }) | null>;
  /** `conflict`: another page has written it since. `limit_exceeded`: too many or too large. */
  put(owner: ChatOwner, id: string, chat: NewChat): Promise<ChatEntry>;
  /** False: not found. */
  delete(owner: ChatOwner, id: string): Promise<boolean>;
  readonly erasure: ErasurePart;
}

interface ChatStoreContext {
  readonly records: StoredRecords;
  /** Milliseconds since 1970. */
  now(): number;
  isErasing(owner: { readonly tenant: string; readonly requestId: string }): boolean;
}

/** Distinguishes these records from other stored objects. */
const TYPE = 'dashboard.chat';
const NEVER_MS = 8.64e15;
export const MAX_CHATS = 2000;
export const MAX_CHAT_CHARS = 4 << 20;
/** A search reads the conversations changed last, up to this many characters; older ones are found by their titles. */
export const MAX_SEARCH_CHARS = 32_000_000;

interface About extends Omit<ChatEntry, 'id'> {
  readonly type: typeof TYPE;
  readonly keyId: string | null;
}

export function createChatStore({ records, now, isErasing }: ChatStoreContext): ChatStore {
  const queues = createSerialQueues();
  /** Keys have conversations of their own, also with the same id. */
  const recordId = (keyId: string | null, id: string): string => `${TYPE}:${keyId ?? ''}:${id}`;

  function entryOf({ keyId }: ChatOwner, { id, about }: StoredHead): ChatEntry | null {
    const { type, keyId: owner, ...entry } = about as unknown as About;
    if (type !== TYPE || (owner !== null && owner !== keyId)) return null;
    return { ...entry, id: id.slice(recordId(owner, '').length) };
  }

  const list = async (owner: ChatOwner): Promise<readonly ChatEntry[]> =>
    (await records.heads(owner.tenant)).flatMap((head) => entryOf(owner, head) ?? []);

  /** The key whose record it is, and the record; null: not found. */
  async function read({ tenant, keyId }: ChatOwner, id: string) {
    for (const holder of new Set([keyId, null])) {
      const record = await records.read(tenant, recordId(holder, id));
      if (record !== null) return { holder, ...record };
    }
    return null;
  }

  async function find(owner: ChatOwner, id: string) {
    const record = await read(owner, id);
    const entry = record === null ? null : entryOf(owner, record.head);
    return entry === null ? null : { ...entry, content: JSON.parse(record!.text) as unknown };
  }

  async function search(owner: ChatOwner, words: string): Promise<readonly ChatEntry[]> {
    const needle = words.toLowerCase();
    const matches: ChatEntry[] = [];
    let numChars = 0;
    for (const entry of (await list(owner)).toSorted((a, b) => b.updatedMs - a.updatedMs)) {
      if (entry.title.toLowerCase().includes(needle)) matches.push(entry);
      else if (numChars < MAX_SEARCH_CHARS) {
        const text = (await read(owner, entry.id))?.text ?? '';
        numChars += text.length;
        if (contains(text, needle)) matches.push(entry);
      }
    }
    return matches;
  }

  return {
    list,
    search,
    find,
    put: (owner, id, { title, isPinned, version, requestIds, content }) =>
      queues.run(owner.tenant, async () => {
        const text = JSON.stringify(content);
        if (text.length > MAX_CHAT_CHARS) {
          throw new RuvLLMError(
            'limit_exceeded',
            `a conversation of ${text.length} characters; the limit is ${MAX_CHAT_CHARS}`,
          );
        }
        const { tenant, keyId } = owner;
        if (requestIds.some((requestId) => isErasing({ tenant, requestId }))) {
          throw new RuvLLMError('conflict', 'a request of this conversation is being erased');
        }
        const old = await read(owner, id);
        const stored = old === null ? 0 : (old.head.about as unknown as About).version;
        if (stored !== version) {
          throw new RuvLLMError('conflict', `the conversation has version ${stored}, not ${version}`, { data: { version: stored } }); // prettier-ignore
        }
        if (stored === 0 && (await list(owner)).length >= MAX_CHATS) {
          throw new RuvLLMError(
            'limit_exceeded',
            `${MAX_CHATS} conversations are stored, which is the limit; delete some`,
          );
        }
        const entry = { title, isPinned, updatedMs: now(), version: version + 1 };
        const owners = requestIds.map((requestId) => ({ requestId }));
        const holder = old === null ? keyId : old.holder;
        const about = { type: TYPE, keyId: holder, ...entry } satisfies About;
        await records.put(tenant, { id: recordId(holder, id), expiresMs: NEVER_MS, owners, about }, text);
        return { id, ...entry };
      }),
    delete: (owner, id) =>
      queues.run(owner.tenant, async () => {
        const old = await read(owner, id);
        if (old !== null) await records.delete(owner.tenant, [old.head.id]);
        return old !== null;
      }),
    erasure: {
      name: 'conversations',
      // The memory erases the records; writes before are in them.
      erase: () => queues.settle(),
      count: async () => 0,
    },
  };
}

/** Whether a message of a stored conversation contains the words, in lower case. */
function contains(json: string, words: string): boolean {
  // Most conversations do not, and parsing them all would take long.
  if (!json.toLowerCase().includes(JSON.stringify(words).slice(1, -1))) return false;
  const isMatch = (value: unknown): boolean =>
    typeof value === 'object' &&
    value !== null &&
    Object.entries(value).some(([key, inner]) =>
      key === 'text' && typeof inner === 'string' ? inner.toLowerCase().includes(words) : isMatch(inner),
    );
  return isMatch(JSON.parse(json));
}
