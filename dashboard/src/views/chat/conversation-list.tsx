import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { Button } from '../../components/button.tsx';
import { Dialog } from '../../components/dialog.tsx';
import { Field } from '../../components/field.tsx';
import { Notice } from '../../components/notice.tsx';
import { showToast } from '../../components/toast.tsx';
import { visibleText } from '../../format/visible-text.ts';
import { download, fileNameOf, toMarkdown } from './export.ts';
import {
  currentId,
  keptIn,
  loadConversation,
  openConversation,
  orderedConversations,
  removeConversation,
  restoreConversation,
  saveFailure,
  setKeeping,
  startConversation,
  updateConversation,
} from './store.ts';
import { type Conversation, isEmpty, titleOf } from './types.ts';

/** The list of conversations, with a search, and where they are kept. */
export function ConversationList({ onSelect = () => {} }: { onSelect?: () => void }) {
  const search = useSignal('');
  const menuOf = useSignal<string | null>(null);
  const startNew = (): void => {
    startConversation();
    onSelect();
  };
  const words = search.value.trim().toLowerCase();
  const list = orderedConversations.value.filter((one) => words === '' || contains(one, words));
  const opened = orderedConversations.value.find(({ id }) => id === menuOf.value);
  return (
    <div class="conversations">
      <Button icon="plus" onClick={startNew}>
        New conversation
      </Button>
      <input
        class="input"
        type="search"
        aria-label="Search conversations"
        placeholder="Search"
        value={search}
        onInput={(event) => (search.value = event.currentTarget.value)}
      />
      <ul>
        {list.map((conversation) => (
          <li
            key={conversation.id}
            class="conversation"
            data-current={conversation.id === currentId.value ? '' : undefined}
          >
            <button
              type="button"
              aria-current={conversation.id === currentId.value ? 'true' : undefined}
              onClick={() => {
                openConversation(conversation.id);
                onSelect();
              }}
            >
              <span dir="auto">
                {conversation.isPinned && <span aria-label="Pinned">★ </span>}
                {visibleText(titleOf(conversation))}
              </span>
            </button>
            {!isEmpty(conversation) && (
              <Button
                kind="plain"
                isSmall
                icon="settings"
                label={`Options of ${visibleText(titleOf(conversation))}`}
                onClick={() => (menuOf.value = conversation.id)}
              />
            )}
          </li>
        ))}
      </ul>
      {list.length === 0 && <p class="small soft">No conversation has these words.</p>}
      {keptIn.value === 'server' ? (
        <p class="small soft">Saved on this server for this key.</p>
      ) : (
        <label class="check small">
          <input
            type="checkbox"
            checked={keptIn.value === 'browser'}
            onChange={(event) => setKeeping(event.currentTarget.checked)}
          />
          <span>Keep conversations in this browser</span>
        </label>
      )}
      {saveFailure.value !== '' && <Notice tone="warn">{saveFailure.value}</Notice>}
      {opened !== undefined && <ConversationDialog conversation={opened} onClose={() => (menuOf.value = null)} />}
    </div>
  );
}

const contains = (conversation: Conversation, words: string): boolean =>
  titleOf(conversation).toLowerCase().includes(words) ||
  conversation.messages.some(({ text }) => text.toLowerCase().includes(words));

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
    showToast(`Deleted ${visibleText(titleOf(removed))}.`, { label: 'Undo', run: () => restoreConversation(removed) });
  }
  return (
    <Dialog title="Conversation" onClose={onClose}>
      <form class="stack" onSubmit={rename}>
        <Field label="Title" hint="Empty: the first line of the first message.">
          {(field) => (
            <input
              id={field}
              class="input"
              maxLength={200}
              value={title}
              onInput={(event) => (title.value = event.currentTarget.value)}
            />
          )}
        </Field>
        <div class="row">
          <Button isPressed={isPinned} isDisabled={!isLoaded} onClick={() => update({ isPinned: !isPinned })}>
            {isPinned ? 'Unpin' : 'Pin'}
          </Button>
          <Button
            icon="download"
            isDisabled={!isLoaded}
            onClick={() => download(`${fileNameOf(conversation)}.md`, 'text/markdown', toMarkdown(conversation))}
          >
            Markdown
          </Button>
          <Button
            icon="download"
            isDisabled={!isLoaded}
            onClick={() =>
              download(`${fileNameOf(conversation)}.json`, 'application/json', JSON.stringify(conversation, null, 2))
            }
          >
            JSON
          </Button>
          <Button kind="danger" icon="trash" onClick={() => void remove()}>
            Delete
          </Button>
        </div>
        <div class="row end">
          <Button onClick={onClose}>Cancel</Button>
          <Button kind="primary" type="submit" isDisabled={!isLoaded}>
            Save
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
