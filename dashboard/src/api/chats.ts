import type { Client } from './client.ts';
import type { ListOf } from './types.ts';

/** A stored conversation without its messages. */
export interface ChatSummary {
  readonly id: string;
  readonly title: string;
  readonly is_pinned: boolean;
  /** Seconds since 1970. */
  readonly updated: number;
  readonly version: number;
}

export interface ChatToStore {
  readonly title: string;
  readonly is_pinned: boolean;
  /** The version it replaces, 0 for none. */
  readonly version: number;
  readonly request_ids: readonly string[];
  readonly content: object;
}

const pathOf = (id: string): string => `/v1/chats/${encodeURIComponent(id)}`;

/** Conversations on the server. */
export const chatEndpoints = (client: Client) => ({
  list: async () => (await client.get<ListOf<ChatSummary>>('/v1/chats')).data,
  /** Those that contain the words, also in their messages. */
  search: async (words: string, signal: AbortSignal) =>
    (await client.get<ListOf<ChatSummary>>('/v1/chats', { query: { q: words }, signal })).data,
  get: (id: string) => client.get<ChatSummary & { readonly content: object }>(pathOf(id)),
  put: (id: string, chat: ChatToStore) => client.post<ChatSummary>(pathOf(id), chat, { outlivesPage: true }),
  remove: (id: string) => client.remove<unknown>(pathOf(id)),
});
