import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { chatEndpoints } from '../../api/chats.ts';
import { isAbort } from '../../api/errors.ts';
import { client, identity } from '../../app/session.ts';
import { Button } from '../../components/button.tsx';
import { Dialog } from '../../components/dialog.tsx';
import { Field } from '../../components/field.tsx';
import { ErrorNotice, Notice } from '../../components/notice.tsx';
import { showToast } from '../../components/toast.tsx';
import { visibleText } from '../../format/visible-text.ts';
import { messages } from '../../messages/index.ts';
import { download, fileNameOf, toMarkdown } from './export.ts';
import { ImportButton } from './import-button.tsx';
import {
  conversations,
  currentId,
  keptIn,
  listedConversations,
  loadConversation,
  openConversation,
  removeConversation,
  restoreConversation,
  saveFailure,
  setKeeping,
  startConversation,
  updateConversation,
} from './store.ts';
import { type Conversation, titleOf } from './types.ts';

const text = messages.chat.list;
const chats = chatEndpoints(client);

/** The list of conversations, with a search, and where they are kept. */
export function ConversationList({ onSelect = () => {} }: { onSelect?: () => void }) {
  const search = useSignal('');
  const menuOf = useSignal<string | null>(null);
  const startNew = (): void => {
    startConversation();
    onSelect();
  };
  const words = search.value.trim().toLowerCase();
  const onServer = useServerMatches(words);
  const matches =
    words === ''
      ? null
      : new Set([
          ...conversations.value.filter((one) => contains(one, words)).map(({ id }) => id),
          ...onServer.ids.value,
        ]);
  const list = listedConversations.value.filter(({ id }) => matches === null || matches.has(id));
  const opened = menuOf.value === null ? undefined : conversations.value.find(({ id }) => id === menuOf.value);
  return (
    <div class="conversations">
      <Button icon="plus" onClick={startNew}>
        {messages.chat.newConversation}
      </Button>
      <input
        class="input"
        type="search"
        aria-label={text.search}
        placeholder={text.searchPlaceholder}
        value={search}
        maxLength={200}
        onInput={(event) => (search.value = event.currentTarget.value)}
      />
      <ul>
        {list.map(({ id, title, isPinned, isEmpty }) => (
          <li key={id} class="conversation" data-current={id === currentId.value ? '' : undefined}>
            <button
              type="button"
              title={visibleText(title)}
              aria-current={id === currentId.value ? 'true' : undefined}
              onClick={() => {
                openConversation(id);
                onSelect();
              }}
            >
              <span dir="auto">
                {isPinned && <span aria-label={text.pinned}>★ </span>}
                {visibleText(title)}
              </span>
            </button>
            {!isEmpty && (
              <Button
                kind="plain"
                isSmall
                icon="settings"
                label={text.options(visibleText(title))}
                onClick={() => (menuOf.value = id)}
              />
            )}
          </li>
        ))}
      </ul>
      {list.length === 0 && <p class="small soft">{onServer.isSearching.value ? text.searching : text.noMatch}</p>}
      {onServer.failure.value !== null && <ErrorNotice error={onServer.failure.value} />}
      {keptIn.value === 'server' ? (
        <p class="small soft">{identity.value?.key == null ? text.onServer : text.onServerForKey}</p>
      ) : (
        <label class="check small">
          <input
            type="checkbox"
            checked={keptIn.value === 'browser'}
            onChange={(event) => setKeeping(event.currentTarget.checked)}
          />
          <span>{text.inBrowser}</span>
        </label>
      )}
      <div>
        <ImportButton onDone={onSelect} />
      </div>
      {saveFailure.value !== '' && <Notice tone="warn">{saveFailure.value}</Notice>}
      {opened !== undefined && <ConversationDialog conversation={opened} onClose={() => (menuOf.value = null)} />}
    </div>
  );
}

/** After this pause the server searches the conversations that this page has not loaded. */
const SEARCH_DELAY_MS = 250;

/** The conversations on the server that contain the words. */
function useServerMatches(words: string) {
  const ids = useSignal<readonly string[]>([]);
  const isSearching = useSignal(false);
  const failure = useSignal<unknown>(null);
  useEffect(() => {
    ids.value = [];
    failure.value = null;
    isSearching.value = words !== '' && keptIn.value === 'server';
    if (!isSearching.value) return undefined;
    const controller = new AbortController();
    const timer = setTimeout(async () => {
      try {
        ids.value = (await chats.search(words, controller.signal)).map(({ id }) => id);
      } catch (error) {
        if (isAbort(error)) return;
        failure.value = error;
      }
      isSearching.value = false;
    }, SEARCH_DELAY_MS);
    return () => {
      clearTimeout(timer);
      controller.abort();
    };
  }, [words]);
  return { ids, isSearching, failure };
}

const contains = (conversation: Conversation, words: string): boolean =>
  titleOf(conversation).toLowerCase().includes(words) ||
  conversation.messages.some((message) => message.text.toLowerCase().includes(words));

/** Rename, pin, export and delete. */
function ConversationDialog({ conversation, onClose }: { conversation: Conversation; onClose: () => void }) {
  const title = useSignal(titleOf(conversation));
  const { id, isPinned, isLoaded } = conversation;
  useEffect(() => loadConversation(id), [id]);
  const update = (changes: Partial<Conversation>): void =>
    updateConversation(id, (latest) => ({ ...latest, ...changes }));

  function rename(event: Event): void {
    event.preventDefault();
    const chosen = title.value.trim();
    if (chosen !== titleOf(conversation)) update({ title: chosen === '' ? null : chosen });
    onClose();
  }
  async function remove(): Promise<void> {
    onClose();
    const removed = await removeConversation(id);
    if (removed === null) return;
    showToast(text.deleted(visibleText(titleOf(removed))), {
      label: text.undo,
      run: () => restoreConversation(removed),
    });
  }
  return (
    <Dialog title={messages.chat.conversation} onClose={onClose}>
      <form class="stack" onSubmit={rename}>
        <Field label={text.name} hint={text.nameHint}>
          {(field) => (
            <input
              id={field}
              autofocus
              class="input"
              maxLength={200}
              value={title}
              onInput={(event) => (title.value = event.currentTarget.value)}
            />
          )}
        </Field>
        <div class="row">
          <Button isPressed={isPinned} isDisabled={!isLoaded} onClick={() => update({ isPinned: !isPinned })}>
            {isPinned ? text.unpin : text.pin}
          </Button>
          <Button
            icon="download"
            isDisabled={!isLoaded}
            onClick={() => download(`${fileNameOf(conversation)}.md`, 'text/markdown', toMarkdown(conversation))}
          >
            {'Markdown'}
          </Button>
          <Button
            icon="download"
            isDisabled={!isLoaded}
            onClick={() =>
              download(`${fileNameOf(conversation)}.json`, 'application/json', JSON.stringify(conversation, null, 2))
            }
          >
            {'JSON'}
          </Button>
          <Button kind="danger" icon="trash" onClick={() => void remove()}>
            {text.remove}
          </Button>
        </div>
        <div class="row end">
          <Button onClick={onClose}>{messages.chat.cancel}</Button>
          <Button kind="primary" type="submit" isDisabled={!isLoaded}>
            {text.save}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
