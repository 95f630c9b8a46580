import { computed, effect, signal } from '@preact/signals';
import { identity, onSignOut } from '../../app/session.ts';
import { createId } from '../../format/create-id.ts';
import { mergeTabs } from './merge-tabs.ts';
import type { ChatSettings, Conversation, Message } from './types.ts';

/** The localStorage key of a tenant; keys of other tenants do not see these conversations. */
const storageKeyOf = (tenant: string): string => `ruvllm.conversations.${tenant}`;
/** Writing megabytes on every token would block the page. */
const SAVE_DELAY_MS = 1000;

/** The API's default temperature of 1 makes small models ramble. */
const DEFAULT_SETTINGS: ChatSettings = { system: '', options: { temperature: 0.7 }, usesMemory: false };

/** All conversations, newest first. */
export const conversations = signal<readonly Conversation[]>([]);
export const currentId = signal('');
export const current = computed(() => conversations.value.find(({ id }) => id === currentId.value) ?? null);
/** Whether conversations are saved in this browser. Off by default. */
export const isSaving = signal(false);
export const saveFailure = signal('');

let tenant = '';
let isOpen = false;

/** Restores saved conversations and starts a new one. */
export function openStore(): void {
  if (isOpen) return;
  isOpen = true;
  tenant = identity.value?.tenant ?? '';
  const storedText = localStorage.getItem(storageKeyOf(tenant));
  isSaving.value = storedText !== null;
  conversations.value = storedText === null ? [] : parseConversations(storedText);
  startConversation();
}

onSignOut(() => {
  isOpen = false;
  isSaving.value = false;
  conversations.value = [];
  currentId.value = '';
});

/** Starts a conversation with the current settings, or reuses the newest one if it is still empty. */
export function startConversation(): void {
  const [last] = conversations.value;
  if (last === undefined || last.messages.length > 0) {
    const { model, settings } = current.value ?? last ?? { model: null, settings: DEFAULT_SETTINGS };
    const conversation = { id: createId(), model, settings, messages: [], createdMs: Date.now() };
    conversations.value = [conversation, ...conversations.value];
  }
  currentId.value = conversations.value[0]!.id;
}

export function updateConversation(id: string, change: (conversation: Conversation) => Conversation): void {
  conversations.value = conversations.value.map((conversation) =>
    conversation.id === id ? change(conversation) : conversation,
  );
}

export function updateMessage(conversationId: string, id: string, change: (message: Message) => Message): void {
  updateConversation(conversationId, (conversation) => ({
    ...conversation,
    messages: conversation.messages.map((message) => (message.id === id ? change(message) : message)),
  }));
}

export function removeConversation(id: string): void {
  conversations.value = conversations.value.filter((conversation) => conversation.id !== id);
  if (currentId.value === id) startConversation();
}

/** Turns saving on or off; turning it off deletes the saved conversations. */
export function setSaving(isEnabled: boolean): void {
  isSaving.value = isEnabled;
  saveFailure.value = '';
  if (!isEnabled) localStorage.removeItem(storageKeyOf(tenant));
}

/** Returns the title of a conversation: the first line of its first user message. */
export function titleOf({ messages }: Conversation): string {
  const text = messages.find(({ role }) => role === 'user')?.text ?? '';
  const line = text.slice(0, 200).trim().split('\n')[0]!;
  return line === '' ? 'New conversation' : line.length > 60 ? `${line.slice(0, 60)}…` : line;
}

let timer = 0;
/** Changes from another tab are already stored; saving them again would make two tabs trigger each other forever. */
let isRemoteChange = false;
effect(() => {
  const all = conversations.value;
  const isSavePending = timer !== 0;
  clearTimeout(timer);
  timer = 0;
  if (isSaving.value && (isSavePending || !isRemoteChange)) timer = window.setTimeout(() => save(all), SAVE_DELAY_MS);
});

addEventListener('storage', ({ key, oldValue, newValue }) => {
  if (!isOpen || !isSaving.value || key !== storageKeyOf(tenant)) return;
  if (newValue === null) {
    isSaving.value = false; // otherwise this tab would write back what the other tab deleted
    return;
  }
  isRemoteChange = true;
  conversations.value = mergeTabs(conversations.value, {
    before: parseConversations(oldValue ?? '[]'),
    after: parseConversations(newValue),
  });
  isRemoteChange = false;
  if (current.value === null) startConversation();
});

function save(all: readonly Conversation[]): void {
  timer = 0;
  try {
    localStorage.setItem(storageKeyOf(tenant), JSON.stringify(all.filter(({ messages }) => messages.length > 0)));
    saveFailure.value = '';
  } catch {
    saveFailure.value = 'Browser storage is full: the latest changes are not saved. Delete some conversations.';
  }
}

/** Parses saved conversations. Data of an unexpected shape, from an older version or edited by hand, is discarded as a whole. */
export function parseConversations(text: string): Conversation[] {
  try {
    const all = JSON.parse(text) as Conversation[];
    return all.map((conversation) => ({
      ...conversation,
      settings: { ...DEFAULT_SETTINGS, ...conversation.settings },
      // The page that was streaming the answer is gone.
      messages: conversation.messages.map((message) =>
        message.state === 'streaming' ? { ...message, state: 'stopped' as const } : { ...message },
      ),
    }));
  } catch {
    return [];
  }
}
