import { computed, effect, signal } from '@preact/signals';
import { onSignOut, who } from '../../app/session.ts';
import { createId } from '../../format/create-id.ts';
import { mergeTabs } from './merge-tabs.ts';
import type { ChatSettings, Conversation, Message } from './types.ts';

/** In localStorage, by tenant: another key finds nothing of this one's. */
const placeOf = (tenant: string): string => `ruvllm.conversations.${tenant}`;
/** Writing megabytes after every word would hold up the page. */
const SAVE_DELAY_MS = 1000;

/** Small models ramble at a temperature of 1, which is what the API takes when nothing is said. */
const PLAIN: ChatSettings = { system: '', options: { temperature: 0.7 }, usesMemory: false };

/** The newest first. */
export const conversations = signal<readonly Conversation[]>([]);
export const currentId = signal('');
export const current = computed(() => conversations.value.find(({ id }) => id === currentId.value) ?? null);
/** Whether conversations stay in this browser when the page is closed; nobody's do unless they say so. */
export const isKept = signal(false);
export const keepFailure = signal('');

let tenant = '';
let isOpened = false;

/** Brings back what was kept, and begins a conversation. */
export function openStore(): void {
  if (isOpened) return;
  isOpened = true;
  tenant = who.value?.tenant ?? '';
  const kept = localStorage.getItem(placeOf(tenant));
  isKept.value = kept !== null;
  conversations.value = kept === null ? [] : readKept(kept);
  startConversation();
}

onSignOut(() => {
  isOpened = false;
  isKept.value = false;
  conversations.value = [];
  currentId.value = '';
});

/** A new conversation, made like the last one; one without a word is used again. */
export function startConversation(): void {
  const [last] = conversations.value;
  if (last === undefined || last.messages.length > 0) {
    const { model, settings } = current.value ?? last ?? { model: null, settings: PLAIN };
    const started = { id: createId(), model, settings, messages: [], createdMs: Date.now() };
    conversations.value = [started, ...conversations.value];
  }
  currentId.value = conversations.value[0]!.id;
}

export function updateConversation(id: string, change: (one: Conversation) => Conversation): void {
  conversations.value = conversations.value.map((one) => (one.id === id ? change(one) : one));
}

export function updateMessage(conversationId: string, id: string, change: (message: Message) => Message): void {
  updateConversation(conversationId, (one) => ({
    ...one,
    messages: one.messages.map((message) => (message.id === id ? change(message) : message)),
  }));
}

export function removeConversation(id: string): void {
  conversations.value = conversations.value.filter((one) => one.id !== id);
  if (currentId.value === id) startConversation();
}

export function keepConversations(keeps: boolean): void {
  isKept.value = keeps;
  keepFailure.value = '';
  if (!keeps) localStorage.removeItem(placeOf(tenant));
}

/** How a conversation is called in a list: how it began. */
export function titleOf({ messages }: Conversation): string {
  const text = messages.find(({ role }) => role === 'user')?.text ?? '';
  const line = text.slice(0, 200).trim().split('\n')[0]!;
  return line === '' ? 'New conversation' : line.length > 60 ? `${line.slice(0, 60)}…` : line;
}

let timer = 0;
/** What came from another tab is written already: two tabs that answered each other would never end. */
let isFromOther = false;
effect(() => {
  const all = conversations.value;
  const isWaiting = timer !== 0;
  clearTimeout(timer);
  timer = 0;
  if (isKept.value && (isWaiting || !isFromOther)) timer = window.setTimeout(() => save(all), SAVE_DELAY_MS);
});

addEventListener('storage', ({ key, oldValue, newValue }) => {
  if (!isOpened || !isKept.value || key !== placeOf(tenant)) return;
  if (newValue === null) {
    isKept.value = false; // else what was to be forgotten there would be written here again
    return;
  }
  isFromOther = true;
  conversations.value = mergeTabs(conversations.value, {
    before: readKept(oldValue ?? '[]'),
    after: readKept(newValue),
  });
  isFromOther = false;
  if (current.value === null) startConversation();
});

function save(all: readonly Conversation[]): void {
  timer = 0;
  try {
    localStorage.setItem(placeOf(tenant), JSON.stringify(all.filter(({ messages }) => messages.length > 0)));
    keepFailure.value = '';
  } catch {
    keepFailure.value = 'This browser has no more room: the latest changes are not kept.';
  }
}

/** What an older page, or a hand, has written may be anything: it is taken whole or not at all. */
export function readKept(text: string): Conversation[] {
  try {
    const all = JSON.parse(text) as Conversation[];
    return all.map((one) => ({
      ...one,
      settings: { ...PLAIN, ...one.settings },
      // Nobody is answering it any more.
      messages: one.messages.map((message) =>
        message.state === 'streaming' ? { ...message, state: 'stopped' as const } : { ...message },
      ),
    }));
  } catch {
    return [];
  }
}
