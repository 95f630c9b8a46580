import { messages } from '../../messages/index.ts';
import { mergeTabs } from './merge-tabs.ts';
import { readConversation } from './read-conversation.ts';
import type { Saves, SavesContext } from './store.ts';
import { type Conversation, isEmpty } from './types.ts';

/** Writing megabytes on every token would block the page. */
const SAVE_DELAY_MS = 1000;

/** Keeps conversations in this browser. */
export interface BrowserSaves extends Saves {
  isEnabled(): boolean;
  /** Turning it off deletes the kept conversations. */
  setEnabled(isEnabled: boolean): void;
}

export function createBrowserSaves({ read, write, fail, keeps }: SavesContext, tenant: string): BrowserSaves {
  /** Keys of other tenants do not see these conversations. */
  const storageKey = `ruvllm.conversations.${tenant}`;
  /** Present: the user turned it off. */
  const offKey = `ruvllm.conversations-off.${tenant}`;
  let timer = 0;
  /** Changes from another tab are already stored; saving them again would make two tabs trigger each other forever. */
  let isRemoteChange = false;

  const isEnabled = (): boolean => localStorage.getItem(offKey) === null;

  function save(): void {
    timer = 0;
    try {
      localStorage.setItem(storageKey, JSON.stringify(read().filter((one) => !isEmpty(one))));
      fail('');
    } catch {
      fail(messages.chat.failures.storageFull);
    }
  }

  function onStorage({ key, oldValue, newValue }: StorageEvent): void {
    if (key === offKey) keeps(newValue === null); // turned on or off in another tab
    if (key !== storageKey || newValue === null) return;
    isRemoteChange = true;
    write(mergeTabs(read(), { before: parseConversations(oldValue ?? '[]'), after: parseConversations(newValue) }));
    isRemoteChange = false;
  }

  return {
    isEnabled,
    setEnabled(isOn) {
      if (isOn) return localStorage.removeItem(offKey);
      localStorage.setItem(offKey, '');
      localStorage.removeItem(storageKey);
    },
    async open() {
      const kept = parseConversations(localStorage.getItem(storageKey) ?? '[]');
      isRemoteChange = true;
      write([...read(), ...kept]);
      isRemoteChange = false;
      addEventListener('storage', onStorage);
    },
    async load() {},
    changed() {
      const isPending = timer !== 0;
      clearTimeout(timer);
      timer = 0;
      if (isEnabled() && (isPending || !isRemoteChange)) timer = window.setTimeout(save, SAVE_DELAY_MS);
    },
    removed() {},
    close() {
      clearTimeout(timer);
      removeEventListener('storage', onStorage);
    },
  };
}

/** Parses kept conversations. Data of an unexpected shape, from an older version or edited by hand, is discarded as a whole. */
export function parseConversations(text: string): Conversation[] {
  try {
    return (JSON.parse(text) as unknown[]).map(readConversation);
  } catch {
    return [];
  }
}
