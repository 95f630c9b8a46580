import { type ChatEntry, type ChatOwner, type ChatStore, MAX_CHATS, MAX_SEARCH_CHARS } from '../chats/chat-store.ts';
import { refusal } from '../errors.ts';
import { type Exchange, json, type RouteCodes } from '../route.ts';
import { booleanField, integerField, listField, objectField, readFields, requiredField, schemaOf, stringField } from '../wire/fields.ts'; // prettier-ignore
import { readQuery } from '../wire/query-fields.ts';

const FIELDS = {
  title: requiredField(stringField(200)),
  is_pinned: booleanField,
  version: requiredField(integerField(0, Number.MAX_SAFE_INTEGER)),
  request_ids: listField(stringField(200, 1), 10_000),
  content: requiredField(objectField),
};
const QUERY = { q: stringField(200) };
const ID = /^[\w-]{1,64}$/;

const writeChat = ({ id, title, isPinned, updatedMs, version }: ChatEntry) => ({
  id,
  object: 'dashboard.chat',
  title,
  is_pinned: isPinned,
  updated: updatedMs / 1000,
  version,
});

const ownerOf = ({ caller: { tenant, keyId } }: Exchange): ChatOwner => ({ tenant, keyId });

function storeOf({ services }: Exchange): ChatStore {
  if (services.chats !== null) return services.chats;
  throw refusal(501, 'not_supported', 'this server has no memory, so it stores no conversations');
}

function idOf({ params }: Exchange): string {
  const id = params['id']!;
  if (ID.test(id)) return id;
  throw refusal(400, 'invalid_value', `a conversation id has 1 to 64 letters, digits, - or _, got ${JSON.stringify(id.slice(0, 100))}`); // prettier-ignore
}

const notFound = (id: string): Error => refusal(404, 'not_found', `conversation ${JSON.stringify(id)} not found`);

/** Conversations of the dashboard, for each key its own. */
export const routes = {
  'GET /v1/chats': {
    summary: `The dashboard's conversations of this key, the last changed first: at most ${MAX_CHATS}. With \`q\`, those that contain these words in the title or a message; messages are searched in the conversations changed last, up to ${MAX_SEARCH_CHARS / 1e6} million characters.`,
    query: QUERY,
    async handle(exchange) {
      const { q } = readQuery(exchange.request, QUERY);
      const store = storeOf(exchange);
      const words = q?.trim() ?? '';
      const chats = await (words === '' ? store.list(ownerOf(exchange)) : store.search(ownerOf(exchange), words));
      return json({ object: 'list', data: chats.toSorted((a, b) => b.updatedMs - a.updatedMs).map(writeChat) });
    },
  },
  'GET /v1/chats/:id': {
    summary: 'A conversation of the dashboard with its contents.',
    async handle(exchange) {
      const id = idOf(exchange);
      const chat = await storeOf(exchange).find(ownerOf(exchange), id);
      if (chat === null) throw notFound(id);
      return json({ ...writeChat(chat), content: chat.content });
    },
  },
  'POST /v1/chats/:id': {
    summary: 'Stores a conversation of the dashboard. A 409 if it no longer has the version that the request replaces.',
    body: schemaOf(FIELDS),
    async handle(exchange) {
      const store = storeOf(exchange);
      const id = idOf(exchange);
      const { title, version, content, is_pinned: isPinned, request_ids: requestIds } = await exchange.readRequest((body) => readFields(body, FIELDS)); // prettier-ignore
      const chat = { title, version, content, isPinned: isPinned ?? false, requestIds: requestIds ?? [] };
      return json(writeChat(await store.put(ownerOf(exchange), id, chat)));
    },
  },
  'DELETE /v1/chats/:id': {
    summary: 'Deletes a conversation of the dashboard.',
    async handle(exchange) {
      const id = idOf(exchange);
      if (!(await storeOf(exchange).delete(ownerOf(exchange), id))) throw notFound(id);
      return json({ id, object: 'dashboard.chat.deleted', deleted: true });
    },
  },
} satisfies RouteCodes;
