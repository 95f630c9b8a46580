import { chatEndpoints, type ChatSummary } from '../../api/chats.ts';
import { ApiError, messageOf } from '../../api/errors.ts';
import { client } from '../../app/session.ts';
import { createId } from '../../format/create-id.ts';
import { messages } from '../../messages/index.ts';
import { readConversation } from './read-conversation.ts';
import type { Saves, SavesContext } from './store.ts';
import { type Conversation, createConversation, isEmpty, isStreaming, titleOf } from './types.ts';
import { allMessages } from './versions.ts';

const text = messages.chat.failures;

const SAVE_DELAY_MS = 700;
const RETRY_MS = 10_000;
const MAX_TITLE_CHARS = 200;

/** Keeps conversations on the server, so that they can be continued on another device. */
export function createServerSaves({ read, write, fail }: SavesContext): Saves {
  const chats = chatEndpoints(client);
  /** The conversations as the server has them. */
  const saved = new Map<string, Conversation>();
  /** The conversations that are being sent. */
  const sending = new Set<string>();
  let timer = 0;
  let isSaving = false;
  let isClosed = false;

  const find = (id: string): Conversation | undefined => read().find((one) => one.id === id);
  const isChanged = (one: Conversation): boolean => one.isLoaded && !isEmpty(one) && saved.get(one.id) !== one;
  const isPending = (one: Conversation): boolean => isChanged(one) && !isStreaming(one) && !sending.has(one.id);
  /** Replaces a conversation by what the server has. */
  function accept(conversation: Conversation): void {
    saved.set(conversation.id, conversation);
    write(read().map((one) => (one.id === conversation.id ? conversation : one)));
  }

  async function load(id: string): Promise<void> {
    try {
      const { content, ...summary } = await chats.get(id);
      if (isClosed || find(id) === undefined) return;
      const stored = readConversation(content);
      accept({ ...stored, ...fromSummary(summary), title: stored.title, isLoaded: true });
      fail('');
    } catch (error) {
      fail(text.readOne(messageOf(error)));
    }
  }

  /** Adds conversations of other pages, and drops those deleted there. */
  async function refresh(): Promise<void> {
    try {
      const summaries = await chats.list();
      if (isClosed) return;
      const byId = new Map(summaries.map((summary) => [summary.id, summary]));
      const present = read().filter((one) => one.version === 0 || isChanged(one) || byId.has(one.id));
      const renewed = present.map((one) => {
        const summary = byId.get(one.id);
        if (summary === undefined || summary.version <= one.version || isChanged(one) || isStreaming(one)) return one;
        const outdated = { ...one, ...fromSummary(summary), isLoaded: false };
        saved.set(one.id, outdated);
        return outdated;
      });
      const known = new Set(read().map(({ id }) => id));
      const added = summaries.filter(({ id }) => !known.has(id)).map((summary) => {
        const one = { ...createConversation(), ...fromSummary(summary), isLoaded: false };
        saved.set(one.id, one);
        return one;
      }); // prettier-ignore
      write([...renewed, ...added]);
      fail('');
    } catch (error) {
      fail(text.readAll(messageOf(error)));
    }
  }

  async function saveOne(conversation: Conversation): Promise<void> {
    const { id, version } = conversation;
    const { isLoaded: _, version: __, ...content } = conversation;
    const requestIds = [...new Set(allMessages(conversation).flatMap(({ details }) => details?.requestId || []))];
    sending.add(id);
    try {
      const stored = await chats.put(id, {
        title: titleOf(conversation).slice(0, MAX_TITLE_CHARS),
        is_pinned: conversation.isPinned,
        version,
        request_ids: requestIds,
        content,
      });
      const latest = find(id);
      if (latest === undefined || isClosed) return;
      const next = { ...latest, version: stored.version };
      if (latest === conversation) saved.set(id, next);
      write(read().map((one) => (one.id === id ? next : one)));
    } catch (error) {
      if (!(error instanceof ApiError && error.status === 409)) throw error;
      // Another page changed it: this page's version becomes a conversation of its own.
      const copy = {
        ...(find(id) ?? conversation),
        id: createId(),
        version: 0,
        title: messages.chat.list.copyTitle(titleOf(conversation)),
      };
      write([copy, ...read().filter((one) => one.id !== id)]);
      saved.delete(id);
      await refresh();
    } finally {
      sending.delete(id);
    }
  }

  async function saveAll(): Promise<void> {
    timer = 0;
    if (isSaving || isClosed) return;
    isSaving = true;
    let isFailed = false;
    try {
      for (const { id } of read().filter(isPending)) {
        const one = find(id);
        if (one !== undefined && isPending(one)) await saveOne(one); // a page that was left may have saved it
      }
      fail('');
    } catch (error) {
      isFailed = true;
      fail(text.save(messageOf(error)));
    } finally {
      isSaving = false;
    }
    if (isFailed) schedule(RETRY_MS);
    else if (read().some(isPending)) schedule(SAVE_DELAY_MS);
  }

  function schedule(delayMs: number): void {
    clearTimeout(timer);
    if (!isClosed) timer = window.setTimeout(() => void saveAll(), delayMs);
  }

  const onVisible = (): void => void (document.hidden || refresh());
  const changed = (): void => {
    if (read().some(isChanged)) schedule(SAVE_DELAY_MS);
  };
  /** A page that is left sends everything at once: it would not see an answer before the next request. */
  const onHide = (): void => {
    for (const one of read().filter(isPending)) void saveOne(one).then(changed, changed);
  };

  return {
    async open() {
      document.addEventListener('visibilitychange', onVisible);
      addEventListener('pagehide', onHide);
      await refresh();
    },
    load,
    changed,
    removed({ id, version }) {
      saved.delete(id);
      if (version === 0) return;
      chats.remove(id).catch((error: unknown) => {
        if (!(error instanceof ApiError && error.status === 404)) fail(text.remove(messageOf(error)));
      });
    },
    close() {
      isClosed = true;
      clearTimeout(timer);
      document.removeEventListener('visibilitychange', onVisible);
      removeEventListener('pagehide', onHide);
    },
  };
}

const fromSummary = ({ id, title, is_pinned: isPinned, updated, version }: ChatSummary) => ({
  id,
  title,
  isPinned,
  updatedMs: updated * 1000,
  version,
});
