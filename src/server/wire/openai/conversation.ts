import type { ChatMessage } from '../../../runtime/lower-layers.ts';
import type { ServerLimits } from '../../limits.ts';
import type { ConversationItem, Metadata, StoredObject } from '../../stored/types.ts';
import {
  type Field,
  type JsonSchema,
  fieldsByLimits,
  listField,
  readFields,
  requiredField,
  schemaOf,
} from '../fields.ts';
import { metadataField } from './chat-request.ts';
import { readItem, readItemList } from './responses/input-items.ts';
import { writeItems } from './responses/write-items.ts';

const itemField: Field<ChatMessage> = { schema: { type: 'object' }, read: readItem };
const createFields = fieldsByLimits(({ maxMessages }: ServerLimits) => ({
  items: listField(itemField, maxMessages),
  metadata: metadataField,
}));
const itemsFields = fieldsByLimits(({ maxMessages }: ServerLimits) => ({
  items: requiredField(listField(itemField, maxMessages, 1)),
}));
const UPDATE_FIELDS = { metadata: metadataField };

export const createConversationSchema = (limits: ServerLimits): JsonSchema => schemaOf(createFields(limits));
export const createItemsSchema = (limits: ServerLimits): JsonSchema => schemaOf(itemsFields(limits));
export const updateMetadataSchema = schemaOf(UPDATE_FIELDS);

/** Reads the body of `POST /v1/conversations`. */
export function readConversation(body: unknown, limits: ServerLimits) {
  const { items, metadata } = readFields(body, createFields(limits));
  return { items: items ?? [], metadata: metadata ?? {} };
}

/** Reads the body of `POST /v1/conversations/:id/items`. */
export function readItems(body: unknown, limits: ServerLimits): readonly ChatMessage[] {
  return readFields(body, itemsFields(limits)).items;
}

/** Reads a body with new metadata; null removes all. */
export function readMetadata(body: unknown): Metadata {
  return readFields(body, UPDATE_FIELDS).metadata ?? {};
}

/** Turns as items; `id` is the common part of their ids. */
export function toConversationItems(turns: readonly ChatMessage[], id: string): readonly ConversationItem[] {
  return turns.flatMap((turn, index) => writeItems(turn, `${id}_${index}`));
}

/** The turns of a conversation. */
export function toTurns(items: readonly ConversationItem[]): readonly ChatMessage[] {
  return readItemList(items, 'items');
}

export function writeConversation({ id, createdMs, metadata }: StoredObject<'conversation'>): object {
  return { id, object: 'conversation', created_at: Math.floor(createdMs / 1000), metadata };
}
