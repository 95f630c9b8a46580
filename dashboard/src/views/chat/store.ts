import { computed, effect, signal } from '@preact/signals';
import { hasPart, identity, onSignOut } from '../../app/session.ts';
import { createId } from '../../format/create-id.ts';
import { createBrowserSaves } from './browser-saves.ts';
import { createServerSaves } from './server-saves.ts';
import { type ChatSettings, type Conversation, createConversation, DEFAULT_SETTINGS, isEmpty, type Message, titleOf } from './types.ts'; // prettier-ignore

/** All conversations. */
export const conversations = signal<readonly Conversation[]>([]);
/** Pinned ones first, then by their last message. */
export const orderedConversations = computed(() =>
  conversations.value.toSorted((a, b) => Number(b.isPinned) - Number(a.isPinned) || b.updatedMs - a.updatedMs),
);
/** A conversation in the list. */
export interface ListedConversation {
  readonly id: string;
  readonly title: string;
  readonly isPinned: boolean;
  readonly isEmpty: boolean;
}
/** As text, which stays the same while an answer grows: otherwise the list would be drawn for every token. */
const listing = computed(
  () =>
  JSON.stringify(orderedConversations.value.map((one): ListedConversation => ({ id: one.id, title: titleOf(one), isPinned: one.isPinned, isEmpty: isEmpty(one) }))), // prettier-ignore
);
/** The list of conversations as it is shown. */
export const listedConversations = computed(() => JSON.parse(listing.value) as readonly ListedConversation[]);
export const currentId = signal('');
export const current = computed(() => conversations.value.find(({ id }) => id === currentId.value) ?? null);
export const saveFailure = signal('');
/** Where conversations are kept; null: nowhere, because the user turned it off. */
export const keptIn = signal<'server' | 'browser' | null>(null);

/** Where conversations are kept between visits. */
export interface Saves {
  /** Reads the kept conversations. */
  open(): Promise<void>;
  /** Reads the messages of a conversation. */
  load(id: string): Promise<void>;
  /** Called after every change; saves later. */
  changed(): void;
  removed(conversation: Conversation): void;
  close(): void;
}

/** What saves need of the store. */
export interface SavesContext {
  read(): readonly Conversation[];
  write(all: readonly Conversation[]): void;
  fail(message: string): void;
  /** Whether this browser keeps conversations. */
  keeps(isKept: boolean): void;
}

let tenant = '';
let saves: Saves | null = null;

const context: SavesContext = {
  read: () => conversations.value,
  write(all) {
    conversations.value = all;
    if (current.value === null) startConversation();
  },
  fail: (message) => void (saveFailure.value = message),
  keeps: (isKept) => void (keptIn.value = isKept ? 'browser' : null),
};

/** Model and settings of the last conversation, for the next one in this browser. */
const defaultsKey = (): string => `ruvllm.chat-defaults.${tenant}`;

function readDefaults(): Pick<Conversation, 'model' | 'settings'> {
  try {
    const { model, settings } = JSON.parse(localStorage.getItem(defaultsKey()) ?? '{}') as Partial<Conversation>;
    return { model: model ?? null, settings: { ...DEFAULT_SETTINGS, ...settings } };
  } catch {
    return { model: null, settings: DEFAULT_SETTINGS };
  }
}

/** Restores kept conversations and starts a new one. */
export function openStore(): void {
  if (saves !== null) return;
  tenant = identity.value?.tenant ?? '';
  const isServer = hasPart('memory');
  const browser = createBrowserSaves(context, tenant);
  saves = isServer ? createServerSaves(context) : browser;
  keptIn.value = isServer ? 'server' : browser.isEnabled() ? 'browser' : null;
  startConversation();
  void saves.open();
}

onSignOut(() => {
  saves?.close();
  saves = null;
  keptIn.value = null;
  saveFailure.value = '';
  conversations.value = [];
  currentId.value = '';
});

effect(() => {
  void conversations.value;
  saves?.changed();
});

/** Starts a conversation with the last model and settings, or reuses an empty one. */
export function startConversation(): void {
  const unused = conversations.value.find(isEmpty);
  if (unused === undefined) conversations.value = [createConversation(readDefaults()), ...conversations.value];
  currentId.value = (unused ?? conversations.value[0]!).id;
}

export function openConversation(id: string): void {
  currentId.value = id;
  loadConversation(id);
}

/** Reads the messages of a conversation unless they are here. */
export function loadConversation(id: string): void {
  if (conversations.value.find((one) => one.id === id)?.isLoaded === false) void saves?.load(id);
}

export function updateConversation(id: string, change: (conversation: Conversation) => Conversation): void {
  conversations.value = conversations.value.map((conversation) =>
    conversation.id === id ? change(conversation) : conversation,
  );
}

/** Changes the model or the settings of a conversation, and of those that are started later. */
export function configure(id: string, changes: { model?: string; settings?: ChatSettings }): void {
  updateConversation(id, (latest) => ({ ...latest, ...changes }));
  const { model, settings } = conversations.value.find((one) => one.id === id)!;
  try {
    localStorage.setItem(defaultsKey(), JSON.stringify({ model, settings }));
  } catch {
    // A full storage loses only the defaults.
  }
}

export function updateMessage(conversationId: string, id: string, change: (message: Message) => Message): void {
  updateConversation(conversationId, (conversation) => ({
    ...conversation,
    messages: conversation.messages.map((message) => (message.id === id ? change(message) : message)),
  }));
}

export async function removeConversation(id: string): Promise<Conversation | null> {
  if (conversations.value.find((one) => one.id === id)?.isLoaded === false) await saves?.load(id);
  const removed = conversations.value.find((one) => one.id === id) ?? null;
  if (removed === null) return null;
  conversations.value = conversations.value.filter((conversation) => conversation.id !== id);
  saves?.removed(removed);
  if (currentId.value === id) startConversation();
  return removed;
}

/** Adds conversations of a file. */
export function addConversations(added: readonly Conversation[]): void {
  conversations.value = [...added, ...conversations.value];
}

/** Brings back a deleted conversation. */
export function restoreConversation(conversation: Conversation): void {
  conversations.value = [{ ...conversation, id: createId(), version: 0 }, ...conversations.value];
}

/** Whether this browser keeps conversations; turning it off deletes the kept ones. */
export function setKeeping(isEnabled: boolean): void {
  context.keeps(isEnabled);
  saveFailure.value = '';
  createBrowserSaves(context, tenant).setEnabled(isEnabled);
  saves?.changed();
}
