import { refusal } from '../errors.ts';
import { resolveServerLimits } from '../limits.ts';
import { type Exchange, json, type RouteCodes } from '../route.ts';
import { deleteStored, findStored, updateStored } from '../stored/find-stored.ts';
import type { ConversationItem, StoredObject } from '../stored/types.ts';
import {
  createConversationSchema,
  createItemsSchema,
  readConversation,
  readItems,
  readMetadata,
  toConversationItems,
  updateMetadataSchema,
  writeConversation,
} from '../wire/openai/conversation.ts';
import { PAGE_QUERY, readPage, writeList } from '../wire/openai/list-page.ts';
import { answerId } from './answer.ts';

const TYPE = 'conversation';
const findConversation = (exchange: Exchange): Promise<StoredObject<typeof TYPE>> =>
  findStored(exchange, TYPE, exchange.params['id']!);

function itemNotFound(id: string): Error {
  return refusal(404, 'not_found', `item ${JSON.stringify(id.slice(0, 200))} not found`);
}

async function create({ caller, services, readRequest }: Exchange): Promise<Response> {
  const { items, metadata } = await readRequest((body) => readConversation(body, services.limits));
  const conversation: StoredObject<typeof TYPE> = {
    id: answerId('conv', caller),
    type: TYPE,
    createdMs: services.clock.wallClock(),
    model: null,
    metadata,
    owners: [{ requestId: caller.requestId }],
    content: { items: toConversationItems(items, caller.requestId) },
  };
  if (!(await services.stored.put(caller.tenant, conversation))) {
    throw refusal(422, 'limit_exceeded', 'the conversation exceeds the limit of stored bytes', { param: 'items' });
  }
  return json(writeConversation(conversation));
}

async function addItems(exchange: Exchange): Promise<Response> {
  const { caller, services } = exchange;
  const turns = await exchange.readRequest((body) => readItems(body, services.limits));
  const added = toConversationItems(turns, caller.requestId);
  await updateStored(exchange, TYPE, exchange.params['id']!, (conversation) => ({
    ...conversation,
    owners: [...conversation.owners, { requestId: caller.requestId }],
    content: { items: [...conversation.content.items, ...added] },
  }));
  return json(writeList(added, false));
}

async function deleteItem(exchange: Exchange): Promise<Response> {
  const itemId = exchange.params['item']!;
  const conversation = await updateStored(exchange, TYPE, exchange.params['id']!, (stored) => {
    const items = stored.content.items.filter(({ id }) => id !== itemId);
    if (items.length === stored.content.items.length) throw itemNotFound(itemId);
    return { ...stored, content: { items } };
  });
  return json(writeConversation(conversation));
}

/** `/v1/conversations`: items that responses continue. */
export const routes = {
  'POST /v1/conversations': {
    summary: 'Creates a conversation, whose items responses read and extend.',
    body: createConversationSchema(resolveServerLimits()),
    ignoresUnknownFields: true,
    handle: create,
  },
  'GET /v1/conversations/:id': {
    summary: 'A conversation, without its items.',
    handle: async (exchange) => json(writeConversation(await findConversation(exchange))),
  },
  'POST /v1/conversations/:id': {
    summary: "Replaces a conversation's metadata.",
    body: updateMetadataSchema,
    ignoresUnknownFields: true,
    async handle(exchange) {
      const metadata = await exchange.readRequest(readMetadata);
      const change = (stored: StoredObject<typeof TYPE>) => ({ ...stored, metadata });
      return json(writeConversation(await updateStored(exchange, TYPE, exchange.params['id']!, change)));
    },
  },
  'DELETE /v1/conversations/:id': {
    summary: 'Deletes a conversation with its items; its responses stay.',
    async handle(exchange) {
      const id = exchange.params['id']!;
      await deleteStored(exchange, TYPE, id);
      return json({ id, object: 'conversation.deleted', deleted: true });
    },
  },
  'POST /v1/conversations/:id/items': {
    summary: 'Appends items to a conversation.',
    body: createItemsSchema(resolveServerLimits()),
    ignoresUnknownFields: true,
    handle: addItems,
  },
  'GET /v1/conversations/:id/items': {
    summary: 'The items of a conversation, by default the last first.',
    query: PAGE_QUERY,
    async handle(exchange) {
      const { content } = await findConversation(exchange);
      const { data, hasMore } = readPage(content.items, new URL(exchange.request.url).searchParams, 'desc');
      return json(writeList(data, hasMore));
    },
  },
  'GET /v1/conversations/:id/items/:item': {
    summary: 'An item of a conversation.',
    async handle(exchange) {
      const { content } = await findConversation(exchange);
      const isItem = ({ id }: ConversationItem): boolean => id === exchange.params['item'];
      const item = content.items.find(isItem);
      if (item === undefined) throw itemNotFound(exchange.params['item']!);
      return json(item);
    },
  },
  'DELETE /v1/conversations/:id/items/:item': {
    summary: 'Deletes an item of a conversation, and returns the conversation.',
    handle: deleteItem,
  },
} satisfies RouteCodes;
