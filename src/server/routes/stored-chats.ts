import { json, type RouteCodes } from '../route.ts';
import { deleteStored, findStored, updateStored } from '../stored/find-stored.ts';
import { readMetadata, updateMetadataSchema } from '../wire/openai/conversation.ts';
import { PAGE_QUERY, readPage, writeList } from '../wire/openai/list-page.ts';
import { CHAT_LIST_QUERY, selectChats, writeStoredChat, writeStoredMessages } from '../wire/openai/stored-chat.ts';

const TYPE = 'chat.completion';

/** Chat completions stored with `store: true`. */
export const routes = {
  'GET /v1/chat/completions': {
    summary: 'The stored chat completions, by default the oldest first.',
    query: CHAT_LIST_QUERY,
    async handle({ request, caller, services }) {
      const { stored } = services;
      const query = new URL(request.url).searchParams;
      const entries = selectChats(await stored.list(caller.tenant, TYPE), query);
      const { data, hasMore } = readPage(entries, query, 'asc');
      const chats = await Promise.all(data.map(({ id }) => stored.find(caller.tenant, TYPE, id)));
      // Deleted since the list was read: left out.
      return json(writeList(chats.flatMap((chat) => (chat === null ? [] : [writeStoredChat(chat)])), hasMore)); // prettier-ignore
    },
  },
  'GET /v1/chat/completions/:id': {
    summary: 'A stored chat completion.',
    handle: async (exchange) => json(writeStoredChat(await findStored(exchange, TYPE, exchange.params['id']!))),
  },
  'POST /v1/chat/completions/:id': {
    summary: "Replaces a stored chat completion's metadata.",
    body: updateMetadataSchema,
    ignoresUnknownFields: true,
    async handle(exchange) {
      const metadata = await exchange.readRequest(readMetadata);
      const chat = await updateStored(exchange, TYPE, exchange.params['id']!, (stored) => ({ ...stored, metadata }));
      return json(writeStoredChat(chat));
    },
  },
  'DELETE /v1/chat/completions/:id': {
    summary: 'Deletes a stored chat completion.',
    async handle(exchange) {
      const id = exchange.params['id']!;
      await deleteStored(exchange, TYPE, id);
      return json({ id, object: 'chat.completion.deleted', deleted: true });
    },
  },
  'GET /v1/chat/completions/:id/messages': {
    summary: 'The messages of the request of a stored chat completion.',
    query: PAGE_QUERY,
    async handle(exchange) {
      const chat = await findStored(exchange, TYPE, exchange.params['id']!);
      const query = new URL(exchange.request.url).searchParams;
      const { data, hasMore } = readPage(writeStoredMessages(chat), query, 'asc');
      return json(writeList(data, hasMore));
    },
  },
} satisfies RouteCodes;
