import { computed, signal } from '@preact/signals';
import { createClient } from '../api/client.ts';
import { ApiError, messageOf } from '../api/errors.ts';
import { endpoints } from '../api/index.ts';
import type { Identity, Part, Permissions } from '../api/types.ts';
import { messages } from '../messages/index.ts';

/** In sessionStorage: cleared with the tab and hidden from other tabs and later visitors. */
const KEY_STORAGE_KEY = 'ruvllm.key';

/** Revalidates the key of an idle page, so that a revoked key does not leave data on screen. */
const CHECK_INTERVAL_MS = 15_000;

export type SessionState = 'starting' | 'signed-out' | 'signed-in' | 'unreachable';

export const sessionState = signal<SessionState>('starting');
/** Why the user was signed out, or cannot sign in. */
export const sessionNotice = signal('');
export const identity = signal<Identity | null>(null);

const NO_PERMISSIONS: Permissions = { read: false, write: false, operate: false, download: false, admin: false };
/** The permissions of this key according to the server; views hide actions that it would reject. */
export const permissions = computed<Permissions>(() => identity.value?.allows ?? NO_PERMISSIONS);
/** Whether the server has an optional part, such as memory. */
export const hasPart = (part: Part): boolean => identity.value?.parts[part] === true;

/** Whether the server has no model to answer with. */
export const isServerEmpty = (): boolean => identity.value?.has_models === false;

let key: string | null = sessionStorage.getItem(KEY_STORAGE_KEY);
const signOutHandlers = new Set<() => void>();

export const client = createClient({
  key: () => key,
  onUnauthorized: (error) => signOut(key === null ? '' : messages.app.signedOut(error.message.replace(/\.$/, ''))),
});
export const api = endpoints(client);

/** Registers a handler that clears a view's data on sign-out, so that none of it stays on the page. */
export function onSignOut(clear: () => void): void {
  signOutHandlers.add(clear);
}

/** Finds out whether the server requires a key, and tries the key stored in this tab. */
export async function startSession(): Promise<void> {
  sessionState.value = 'starting';
  sessionNotice.value = '';
  try {
    const needsKey = await api.needsKey();
    if (needsKey && key === null) sessionState.value = 'signed-out';
    else await enter();
  } catch (error) {
    if (error instanceof ApiError && error.status === 401) return;
    sessionNotice.value = messageOf(error);
    sessionState.value = 'unreachable';
  }
}

/** Signs in with a key; throws the server's error when it is rejected. */
export async function signIn(token: string): Promise<void> {
  key = token.trim();
  try {
    await enter();
    sessionStorage.setItem(KEY_STORAGE_KEY, key);
  } catch (error) {
    key = null;
    throw error;
  }
}

export function signOut(notice = ''): void {
  key = null;
  sessionStorage.removeItem(KEY_STORAGE_KEY);
  identity.value = null;
  sessionNotice.value = notice;
  sessionState.value = 'signed-out';
  for (const clear of signOutHandlers) clear();
}

/** Refreshes the permissions of the key and the parts of the server. An unreachable server leaves them as they are. */
export async function refreshIdentity(): Promise<void> {
  if (sessionState.value !== 'signed-in' || document.hidden) return;
  const checkedKey = key;
  try {
    const latest = await api.whoami();
    const isSame = JSON.stringify(latest) === JSON.stringify(identity.value);
    if (key === checkedKey && sessionState.value === 'signed-in' && !isSame) identity.value = latest;
  } catch {
    // The client has already signed out on a 401.
  }
}
setInterval(() => void refreshIdentity(), CHECK_INTERVAL_MS);
document.addEventListener('visibilitychange', () => void refreshIdentity());

async function enter(): Promise<void> {
  identity.value = await api.whoami();
  sessionNotice.value = '';
  sessionState.value = 'signed-in';
}
