import { computed, signal } from '@preact/signals';
import { createClient } from '../api/client.ts';
import { ApiError, messageOf } from '../api/errors.ts';
import { endpoints } from '../api/index.ts';
import type { Allowances, Part, Who } from '../api/types.ts';

/** Where the key is kept: gone with the tab, and never in a place that other tabs or later visitors can read. */
const KEY_PLACE = 'ruvllm.key';

/** How often a key that asks for nothing is looked at: a page that is only read must not outlive a key that was revoked. */
const CHECK_MS = 15_000;

export type SessionState = 'starting' | 'signed-out' | 'signed-in' | 'unreachable';

export const sessionState = signal<SessionState>('starting');
/** Why somebody has to sign in again, or cannot. */
export const sessionNotice = signal('');
export const who = signal<Who | null>(null);

const NOTHING: Allowances = { read: false, write: false, operate: false, admin: false };
/** What the key opens, as the server says; buttons that it would refuse are not shown. */
export const allows = computed<Allowances>(() => who.value?.allows ?? NOTHING);
/** Whether the server has a part, such as a memory. */
export const hasPart = (part: Part): boolean => who.value?.parts[part] === true;

let key: string | null = sessionStorage.getItem(KEY_PLACE);
const signedOut = new Set<() => void>();

export const client = createClient({
  key: () => key,
  onUnauthorized: (error) => signOut(key === null ? '' : `You were signed out: ${error.message}.`),
});
export const api = endpoints(client);

/** Called when a key is given up: nothing that it showed may be left on the page. */
export function onSignOut(clear: () => void): void {
  signedOut.add(clear);
}

/** Asks whether a key is needed, and tries the one that this tab has. */
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

/** Signs in with a key; throws what the server says of it. */
export async function signIn(token: string): Promise<void> {
  key = token.trim();
  try {
    await enter();
    sessionStorage.setItem(KEY_PLACE, key);
  } catch (error) {
    key = null;
    throw error;
  }
}

export function signOut(notice = ''): void {
  key = null;
  sessionStorage.removeItem(KEY_PLACE);
  who.value = null;
  sessionNotice.value = notice;
  sessionState.value = 'signed-out';
  for (const clear of signedOut) clear();
}

/** Looks whether the key still holds, and for what. A server that cannot be reached says nothing of it. */
async function checkKey(): Promise<void> {
  if (sessionState.value !== 'signed-in' || document.hidden) return;
  const asked = key;
  try {
    const found = await api.whoami();
    const isSame = JSON.stringify(found) === JSON.stringify(who.value);
    if (key === asked && sessionState.value === 'signed-in' && !isSame) who.value = found;
  } catch {
    // A refusal has signed out already.
  }
}
setInterval(() => void checkKey(), CHECK_MS);
document.addEventListener('visibilitychange', () => void checkKey());

async function enter(): Promise<void> {
  who.value = await api.whoami();
  sessionNotice.value = '';
  sessionState.value = 'signed-in';
}
